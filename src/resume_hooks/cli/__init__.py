"""The command line: parse a verb's options, run it, and print text or JSON with an exit code.

May import every lower layer, and from hooks only what ``slash`` and the chooser need. Must not make
a decision that a hook could make differently.
"""
