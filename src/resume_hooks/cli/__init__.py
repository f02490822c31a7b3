"""The command line: one file a verb; typed arguments in, engine called, text or JSON out, an exit code.

May import everything below, of hooks what ``slash`` needs. Must not decide anything that a hook would decide otherwise.
"""
