"""Tests of ``resume_hooks.parts.rewind_files`` with the real client, offline."""
