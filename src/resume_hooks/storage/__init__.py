"""Write files atomically, lock files, back them up, move them, and store imports temporarily.

This package works on bytes and paths. It may only import the ground layer, and must not know what a
transcript is.
"""
