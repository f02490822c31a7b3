"""Tests of ``resume_hooks.parts.moved``."""
