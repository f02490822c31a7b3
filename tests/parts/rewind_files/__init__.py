"""Tests of ``resume_hooks.parts.rewind_files``."""
