"""Tests of ``resume_hooks.maintenance.audit``."""
