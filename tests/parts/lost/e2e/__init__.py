"""Tests of ``resume_hooks.parts.lost`` with the real client, offline."""
