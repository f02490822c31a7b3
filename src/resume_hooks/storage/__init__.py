"""Files written whole or not at all, locks, backups, moves, staged imports, appends that are carried over.

May import the ground alone. Must not know what a transcript is: everything here works on bytes and
paths.
"""
