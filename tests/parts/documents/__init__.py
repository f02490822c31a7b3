"""Tests of ``resume_hooks.parts.documents``."""
