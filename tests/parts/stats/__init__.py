"""Tests of ``resume_hooks.parts.stats``."""
