"""Children of Codex sessions."""
