"""Transcripts of others as sessions of this folder: the conversation alone, or a bundle whole.

What was read is unpacked and counted into a private file, scanned as any transcript, and written as
any child: only blocks that were said, by allow-list, under an id of our own. A bundle is a JSON
document whose lines are its frame; nothing is handed out before the digests of all its sessions
fit, and all sessions come in, or none.
"""
