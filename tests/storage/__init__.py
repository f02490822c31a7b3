"""Tests of ``resume_hooks.storage``."""
