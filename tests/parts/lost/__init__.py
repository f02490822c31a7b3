"""Tests of ``resume_hooks.parts.lost``."""
