"""Tests of ``resume_hooks.parts.marks``."""
