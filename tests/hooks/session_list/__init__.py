"""Tests of ``resume_hooks.hooks.session_list``."""
