"""Tests of transcripts.codex."""
