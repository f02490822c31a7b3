"""Find secrets in texts and transcript lines by rules that are data, and remove nothing else.

Imports nothing of ours. Must not know what a session is.
"""
