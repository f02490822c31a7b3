"""Use the machine and its programs: clipboard, terminal, tmux, git's files, ``claude``.

May import only the ground layer. Must not know what a session is.
"""
