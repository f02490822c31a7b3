"""The real Codex CLI, offline."""
