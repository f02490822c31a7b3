"""Tests of ``resume_hooks.transcripts``."""
