"""Codex: where its rollouts lie, what listings show of them, and their copies in our form of record.

Nothing of Codex's is ever written here; its databases are read, if at all, for the names of
threads.
"""
