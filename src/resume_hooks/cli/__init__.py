"""The command line: a file for each verb, and what verbs share; typed arguments in, text or JSON out, an exit code.

May import everything below, of hooks what ``slash`` and the chooser need. Must not decide anything that a hook would
decide otherwise.
"""
