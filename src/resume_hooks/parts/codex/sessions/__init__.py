"""Find Codex threads (sessions), read what lists show about them, and manage copies of threads.

A copy has the format of Claude Code's transcripts. This package never writes to Codex's folder. It
reads Codex's databases only for the names of threads.
"""
