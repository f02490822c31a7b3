"""Tests of ``resume_hooks.system``."""
