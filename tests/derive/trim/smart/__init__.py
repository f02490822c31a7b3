"""Tests of ``resume_hooks.derive.trim.smart``."""
