"""Tests of ``resume_hooks.reading``."""
