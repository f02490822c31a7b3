"""Numbers and texts that the engine shares with the shell scripts and with the plugin's module.

They are defined only in this module. ``make docs`` copies them to ``hooks/shared_values.mjs`` and
to those lines of shell scripts that ``tools/make_docs.py`` lists. This module uses only the
standard library and must run on Python 3.9.
"""

MODEL_TIMEOUT_MINUTES = 2
MODEL_TIMEOUT_SECONDS = 60 * MODEL_TIMEOUT_MINUTES
"""Time limit in seconds for a model's complete answer, for which the user waits."""

MODEL_TIMEOUT_TEXT = "two minutes"
"""``MODEL_TIMEOUT_SECONDS`` in words. A test compares both values."""

ROLLOVER_TIMEOUT_SECONDS = MODEL_TIMEOUT_SECONDS + 30
"""Time limit in seconds for a rollover, from the user's prompt to the displayed answer."""

PROMPT_HOOK_TIMEOUT_SECONDS = ROLLOVER_TIMEOUT_SECONDS + 30
"""Time limit in seconds that the client gives our hook for prompts, as declared in
hooks/hooks.json."""

FULLNESS_CHECK_TOKENS = 60_000
"""The context size, in tokens, at which the client starts to ask the engine how full the session is.

It is 30 % of the smallest context window.
"""

COLD_CACHE_NOTICE_TOKENS = 100_000
"""The minimum number of context tokens for a notice that shows what an expired cache costs.

``hooks/session-start`` checks only how many digits the number has.
"""

PLUGIN_NAME = "resume-hooks"
COLD_CACHE_SENTENCE = "The prompt cache expired; your next prompt resends all"
"""The beginning of the notice that is shown when a session's prompt cache has expired."""

PROMPT_HELD_MESSAGE = "another session is opening, with these words in its input box"
"""The module's answer to a prompt that the user sends while the module opens another session.

The prompt belongs to the other session, so the present session must not answer it.
"""

PROMPT_IN_LIST_MESSAGE = "the list that is opening has these words"
"""The module's answer to a prompt that the user sends while the module opens a list.

The prompt belongs to the list, so the present session must not answer it.
"""

COMMAND_PREFIX = f"/{PLUGIN_NAME}:"
"""The prefix of our commands in every client."""
