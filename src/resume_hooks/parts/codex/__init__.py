"""Sessions of Codex: read, listed, and gone on from, as those of Claude Code."""
