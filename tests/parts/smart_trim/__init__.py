"""Tests of ``resume_hooks.parts.smart_trim``."""
