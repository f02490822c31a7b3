"""Tests of ``resume_hooks.derive.child``."""
