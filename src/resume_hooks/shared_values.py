"""Numbers and words that several programs share: the engine, the shell and the module in the client.

Each is defined here alone. ``make docs`` writes the copies: ``hooks/shared_values.mjs``, and the lines of
shell scripts that ``tools/make_docs.py`` lists. Standard library, Python 3.9.
"""

MODEL_MINUTES = 2
MODEL_SECONDS = 60 * MODEL_MINUTES
"""The time that a model has for all of an answer: somebody waits for it."""

MODEL_TIME = "two minutes"
"""The same in words; a test compares."""

ANSWER_SECONDS = MODEL_SECONDS + 30
"""The time that a rollover has from the prompt to its card."""

CLIENT_SECONDS = ANSWER_SECONDS + 30
"""The time after which a client ends our hook at a prompt: ``timeout`` in its declarations."""

LOOK_TOKENS = 60_000
"""Tokens of a context from which on the engine is asked how full it is: 30 % of the smallest window."""

COLD_TOKENS = 100_000
"""Tokens from which on it is said what going on in a session costs that no cache holds.

``hooks/session-start`` looks at the count of digits.
"""

PLUGIN = "resume-hooks"
COLD_SENTENCE = "The prompt cache expired; your next prompt resends all"
"""How the notice begins that a session is told which no cache holds. It is about that session alone."""

HELD = "another session opens, and has these words in its box"
LISTED = "the list that opens has these words"
"""What the module says of a prompt that is sent while a session or a list opens: nothing is to answer it here."""

SLASH = f"/{PLUGIN}:"
"""What stands before a command of ours in any client."""
