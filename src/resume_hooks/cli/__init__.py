"""The command line: one file a verb; typed arguments in, engine called, text or JSON out, an exit code."""
