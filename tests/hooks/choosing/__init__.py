"""Tests of ``resume_hooks.hooks.choosing``."""
