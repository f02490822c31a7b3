"""Tests of ``resume_hooks.parts.codex``."""
