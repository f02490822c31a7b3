"""Tests of ``resume_hooks.cli.picker``."""
