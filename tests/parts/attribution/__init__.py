"""Tests of ``resume_hooks.parts.attribution``."""
