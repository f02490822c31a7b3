"""Check and repair sessions and the installation: fsck, doctor and bug reports.

This package may import all lower layers. It must not be loaded while a prompt is processed, unless
the prompt needs it.
"""
