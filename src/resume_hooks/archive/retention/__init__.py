"""What the client is about to delete, and keeping it before that; keeping what becomes an ancestor.

Clients delete by the times of files alone: transcripts, large outputs and file backups each by their own. A start
asks one stamp a project, in the shell, whether it is time to look; it keeps the most urgent sessions for 30 ms, says
so in one line, and leaves the rest to an ``async`` hook that nobody waits for. That one packs what is quiet, once a
day.
"""
