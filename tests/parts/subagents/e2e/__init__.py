"""Tests of ``resume_hooks.parts.subagents`` with the real client, offline."""
