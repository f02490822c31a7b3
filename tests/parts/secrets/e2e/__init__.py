"""Tests of ``resume_hooks.parts.secrets`` with the real client, offline."""
