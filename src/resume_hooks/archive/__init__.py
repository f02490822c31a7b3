"""What outlives the client's own cleanup: the vault, retention, the trash, backups of the files a session edited.

May import reading, sessions and what is below. Must not make children or search.
"""
