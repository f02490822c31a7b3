"""Numbers and words that the engine, the shell scripts and the module in the client share.

Only this module defines them. ``make docs`` writes the copies: ``hooks/shared_values.mjs``, and the
lines of shell scripts that ``tools/make_docs.py`` lists. Standard library, Python 3.9.
"""

MODEL_MINUTES = 2
MODEL_SECONDS = 60 * MODEL_MINUTES
"""The time limit for a model's complete answer, while the user waits."""

MODEL_TIME = "two minutes"
"""The same limit in words; a test compares them."""

ANSWER_SECONDS = MODEL_SECONDS + 30
"""The time limit for a rollover, from the prompt to its card."""

CLIENT_SECONDS = ANSWER_SECONDS + 30
"""The client's time limit for our hook at a prompt: ``timeout`` in its declaration."""

LOOK_TOKENS = 60_000
"""The context size in tokens from which the client asks the engine for its use: 30 % of the smallest window."""

COLD_TOKENS = 100_000
"""The context size in tokens from which a notice shows the cost of continuing without a cache.

``hooks/session-start`` checks only the number of digits.
"""

PLUGIN = "resume-hooks"
COLD_SENTENCE = "The prompt cache expired; your next prompt resends all"
"""The beginning of the notice in a session whose prompt cache expired. It concerns that session alone."""

PROMPT_HELD_MESSAGE = "another session is opening, with these words in its input box"
PROMPT_IN_LIST_MESSAGE = "the list that is opening has these words"
"""The module's answers to a prompt sent while a session or a list opens; nothing in this session may answer it."""

SLASH = f"/{PLUGIN}:"
"""The prefix of our commands in any client."""
