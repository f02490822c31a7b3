"""Tests of ``resume_hooks.redaction``."""
