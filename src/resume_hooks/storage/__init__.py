"""Atomic writes, locks, backups, moves and staged imports of files.

May import only the ground layer. Must not know what a transcript is: everything here works on bytes
and paths.
"""
