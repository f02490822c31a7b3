"""Tests of ``resume_hooks.parts.secrets.scrub``."""
