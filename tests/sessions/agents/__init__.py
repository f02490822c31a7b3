"""Tests of ``resume_hooks.sessions.agents``."""
