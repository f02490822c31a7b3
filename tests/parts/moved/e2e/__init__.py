"""Tests of ``resume_hooks.parts.moved`` with the real client, offline."""
