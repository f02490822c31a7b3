"""Tests of ``resume_hooks.trimming``."""
