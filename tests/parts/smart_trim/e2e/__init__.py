"""Tests of ``resume_hooks.parts.smart_trim`` with the real client, offline."""
