"""The command line: what verbs take and do; typed options in, text or JSON and an exit code out.

May import everything below, of hooks what ``slash`` and the chooser need. Must not decide anything
that a hook would decide otherwise.
"""
