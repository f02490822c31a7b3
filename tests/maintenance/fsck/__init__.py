"""Tests of ``resume_hooks.maintenance.fsck``."""
