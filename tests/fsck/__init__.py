"""Tests of ``resume_hooks.fsck``."""
