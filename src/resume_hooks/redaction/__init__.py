"""Find secrets, such as API keys, in texts and transcript lines, and replace only these.

This package imports no other package of resume-hooks, and it must not know what
a session is.
"""
