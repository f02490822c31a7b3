"""Tests of ``transcripts.codex``."""
