"""Tests of ``resume_hooks.derive.verbs``."""
