"""Tests of ``resume_hooks.archive.file_history``."""
