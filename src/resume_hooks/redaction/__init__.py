"""Find secrets, such as API keys, in texts and transcript lines, and replace only the secrets.

This package imports no other package of resume-hooks, and it must not know what a session is.
"""
