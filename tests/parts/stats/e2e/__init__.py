"""Tests of ``resume_hooks.parts.stats`` with the real client, offline."""
