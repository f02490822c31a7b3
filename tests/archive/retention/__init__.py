"""Tests of ``resume_hooks.archive.retention``."""
