"""Tests with the real Codex CLI, which contacts no server outside the machine."""
