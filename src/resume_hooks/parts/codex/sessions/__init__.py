"""Find the threads (sessions) of Codex, read their fields for lists, and manage copies of them.

A copy has the format of Claude Code's transcripts. This package never writes to Codex's folder. It
reads Codex's databases only for the names of threads.
"""
