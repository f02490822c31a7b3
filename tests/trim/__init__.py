"""Tests of ``resume_hooks.trim``."""
