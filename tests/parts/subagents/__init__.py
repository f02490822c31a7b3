"""Tests of ``resume_hooks.parts.subagents``."""
