"""Archive sessions before the client deletes them, and parents as soon as they have a child.

Clients delete transcripts, large outputs and file backups separately, each file by its own time. At
a start, the shell reads a timestamp of the project to see whether a check is due. The check
archives the most urgent sessions for 30 ms, reports them in one line, and leaves the rest to an
``async`` hook that delays nobody. ``vault.policy`` decides what is removed from the vault.
"""
