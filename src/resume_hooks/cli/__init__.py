"""The command line: parse a verb's options, run the verb, and print text or JSON.

These modules may import every lower layer. From ``hooks`` they may import only the modules that
``slash`` and the session picker need. Decisions that the hooks also make must not be implemented
here a second time.
"""
