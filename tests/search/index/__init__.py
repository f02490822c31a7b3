"""Tests of ``resume_hooks.search.index``."""
