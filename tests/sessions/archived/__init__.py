"""Tests of ``resume_hooks.sessions.archived``."""
