"""Tests of ``resume_hooks.parts.marks`` with the real client, offline."""
