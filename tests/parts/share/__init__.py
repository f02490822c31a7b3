"""Tests of ``resume_hooks.parts.share``."""
