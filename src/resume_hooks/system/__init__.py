"""Use the machine and its programs: the clipboard, the terminal, tmux, git's files and ``claude``.

This package may import only the base modules, which import no other package. It must not know what a
session is.
"""
