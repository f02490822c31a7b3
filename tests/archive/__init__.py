"""Tests of ``resume_hooks.archive``."""
