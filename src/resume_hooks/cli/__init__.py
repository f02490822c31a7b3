"""The command line: parse a verb's options, run the verb, and print text or JSON.

These modules may import every lower layer. From ``hooks`` they may import only what ``slash`` and
the session picker need. A decision that hooks also make is never made here a second time.
"""
