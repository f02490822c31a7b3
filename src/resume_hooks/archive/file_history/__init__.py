"""The states of a user's files that a session knows, and the way back to one of them.

Invariant: no file of a project is touched that is not as it was looked at, and none without a copy of what it held.
"""
