"""Check and repair sessions and the installation: fsck, doctor and bug reports.

This package may import every lower layer. A prompt must not load it unless the prompt needs it.
"""
