"""Folders that moved: where the folder of a session went, copies for its new place, a session that lies in two folders."""
