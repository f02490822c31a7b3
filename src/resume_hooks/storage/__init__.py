"""Write files atomically, lock and back up files, move them, and store imports temporarily.

This package may only import the ground layer. It must not know what a transcript is: it works on
bytes and paths.
"""
