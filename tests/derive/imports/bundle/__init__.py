"""Tests of ``resume_hooks.derive.imports.bundle``."""
