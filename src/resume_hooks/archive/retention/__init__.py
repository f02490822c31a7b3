"""Sessions archived before the client deletes them, and parents as soon as they have a child.

Clients delete by the times of files alone: transcripts, large outputs and file backups each by
their own. A start asks one stamp a project, in the shell, whether it is time to look; it keeps the
most urgent sessions for 30 ms, says so in one line, and leaves the rest to an ``async`` hook that
nobody waits for. What leaves the vault again is decided in ``vault.policy``.
"""
