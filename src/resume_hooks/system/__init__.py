"""The machine and the programs on it: clipboard, terminal, tmux, git's files, the ``claude`` executable.

May import the ground alone. Must not know what a session is.
"""
