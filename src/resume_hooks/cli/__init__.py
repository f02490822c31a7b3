"""The command line: what verbs take, what they do, what they share; typed options in, text or JSON out, an exit code.

May import everything below, of hooks what ``slash`` and the chooser need. Must not decide anything that a hook would
decide otherwise.
"""
