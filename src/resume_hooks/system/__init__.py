"""The machine and the programs on it: clipboard, terminal, tmux, git's files, the ``claude`` executable.

May import only the ground layer. Must not know what a session is.
"""
