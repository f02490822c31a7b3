"""Tests of ``resume_hooks.parts.share`` with the real client, offline."""
