"""Define the options of a trim, and parse them from a shell command or from ``>trim``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from resume_hooks.errors import UsageError

MAX_PROTECTED_RESULTS = (
    # Recent turns are not trimmed, but at most this number of their tool results are protected,
    # because a single turn may be the whole session.
    20
)
# By default, an output or input is trimmed only if it has more characters than this number. In a
# shorter one, a placeholder would save too little.
DEFAULT_THRESHOLD_CHARACTERS = 500
# Default number of turns at the end that are kept, because the current work needs them.
DEFAULT_KEPT_TURN_COUNT = 2
MIN_SAVED_TOKENS = 300  # Minimum number of tokens that a trim must save to be worth a new session.
# A trim in place, or the suggestion to trim, needs to save at least this number of tokens, because
# a trim invalidates the API's cache.
MIN_WORTHWHILE_SAVED_TOKENS = 1_000
MAX_OPTION_VALUE = 1_000_000_000  # Larger numbers must be a mistake.

KEPT_TOOL_NAMES = frozenset({"askuserquestion", "exitplanmode", "toolsearch"})
"""Results of these tools are trimmed only if the options name the tool.

The results contain the user's choices and approvals, or schemas that the client loads.
"""

RULE_DESCRIPTIONS = {
    "superseded": "files that were read again or changed later",
    "repeats": "outputs that were repeated word for word",
    "failures": "failed attempts that later succeeded",
    "thinking": "thinking blocks of finished turns",
    "attachments": "files and hook output that Claude Code attached",
    "media": "images and documents",
    "results": "long tool outputs",
    "inputs": "file contents and long commands given to tools",
    "pasted": "the middle of long pastes in prompts",
    "assistant": "long answers of the model, with --assistant",
}
"""Describes the contents that each rule trims, in the order in which the rules are applied.

The first rules trim the least useful contents. If there is a target size, the later rules are
applied only until the target is reached.
"""

RULE_NAMES = tuple(RULE_DESCRIPTIONS)

IN_PLACE_WORD = "here"  # The word after ``/trim`` that requests a trim in place.
NUMBER_OPTION_NAMES = {"keep-recent", "assistant", "target-tokens", "min-savings"}
OPTIONS_WITH_LIST_VALUES = {"tools", "only", "skip"}
_RULE_HELP_LINES = "\n".join(
    f"      {name:<13}{words}" for name, words in RULE_DESCRIPTIONS.items()
)
TRIM_OPTIONS_HELP = f"""options, in any order:
  --tools Read,Bash     trim only these tools (patterns: mcp__*)
  --threshold 300       trim outputs longer than this (characters); Bash=2000 for one tool
  --keep-recent 3       keep this many turns at the end unchanged
  --target-tokens 60000 trim the least useful contents first, down to this size
  --assistant 5         also trim the first 5 long answers; -5: trim all but the last 5
  --only, --skip RULES  apply only these rules, or all but these:
{_RULE_HELP_LINES}"""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a trim.

    ``tools`` contains lower-case names or patterns of tools. If it is empty, the outputs and inputs
    of all tools are trimmed. ``thresholds`` contains thresholds for individual tools, which replace
    ``threshold``. If ``keep_recent`` is None, the default number of turns is protected, but not
    more than ``MAX_PROTECTED_RESULTS`` tool results.

    If ``assistant`` is N > 0, the first N long answers are trimmed. If it is -N, all long answers
    except the last N are trimmed. ``target_tokens`` is 0 if there is no target. ``only`` and
    ``skip`` contain the names of rules.

    If ``max_screen_record_bytes`` is not 0, records with more bytes than this lose their copy of a
    result for the screen. In this case the trim is written even if it saves few tokens.
    """

    tools: tuple[str, ...] = ()
    threshold: int | None = None
    thresholds: Mapping[str, int] = field(default_factory=dict)
    keep_recent: int | None = None
    assistant: int = 0
    target_tokens: int = 0
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    min_savings: int = MIN_SAVED_TOKENS
    max_screen_record_bytes: int = 0

    def get_threshold_of_tool(self, tool: str) -> int:
        """Return the maximum length in characters of an output or input of ``tool`` that is kept."""
        return self.thresholds.get(
            tool.lower(), DEFAULT_THRESHOLD_CHARACTERS if self.threshold is None else self.threshold
        )

    def allows_tool(self, tool: str) -> bool:
        """Check whether contents of ``tool`` may be trimmed.

        ``tool`` is ``""`` for contents that do not belong to a tool.
        """
        name = tool.lower()
        if not self.tools:
            return name not in KEPT_TOOL_NAMES
        return bool(name) and any(fnmatchcase(name, pattern) for pattern in self.tools)

    def rules(self) -> list[str]:
        """Return the names of the rules to apply, in order.

        Raises UsageError if an option names an unknown rule, or if ``only`` names the rule
        ``assistant`` but no number of answers is given.
        """
        for name in (*self.only, *self.skip):
            if name not in RULE_NAMES:
                raise UsageError(f"There is no rule '{name}'", f"Rules: {', '.join(RULE_NAMES)}.")
        if "assistant" in self.only and not self.assistant:
            raise UsageError(
                "The rule 'assistant' needs a number",
                "Add --assistant N to trim the first N answers, or --assistant -N for all but the last N.",
            )
        requested_rules = self.only or tuple(
            name for name in RULE_NAMES if name != "assistant" or self.assistant
        )
        rules = []
        for name in RULE_NAMES:
            if name in requested_rules and name not in self.skip:
                rules.append(name)
        return rules


class EnteredOptions(NamedTuple):
    """The options as the user typed them. Lists have not been split yet."""

    tools: str | None = None
    threshold: Sequence[str] = ()
    keep_recent: int | None = None
    assistant: int = 0
    target_tokens: int | None = None
    only: str | None = None
    skip: str | None = None
    min_savings: int = MIN_SAVED_TOKENS


NO_ENTERED_OPTIONS = EnteredOptions()


def make_options(typed_options: EnteredOptions = NO_ENTERED_OPTIONS) -> Options:
    """Parse typed options. Options that were not typed get default values.

    Raises UsageError for invalid values.
    """
    general_threshold, thresholds_by_tool = _parse_general_and_tool_thresholds(
        typed_options.threshold
    )
    for count in (
        typed_options.keep_recent,
        typed_options.assistant,
        typed_options.target_tokens,
        typed_options.min_savings,
    ):
        if abs(count or 0) > MAX_OPTION_VALUE:
            raise UsageError(
                f"{count} is not a number of turns, answers or tokens",
                f"At most {MAX_OPTION_VALUE:,}.",
            )
    options = Options(
        tools=_parse_list_option("tools", typed_options.tools),
        threshold=general_threshold,
        thresholds=thresholds_by_tool,
        keep_recent=typed_options.keep_recent,
        assistant=typed_options.assistant,
        target_tokens=typed_options.target_tokens or 0,
        only=_parse_list_option("only", typed_options.only),
        skip=_parse_list_option("skip", typed_options.skip),
        min_savings=typed_options.min_savings,
    )
    options.rules()
    return options


def parse_options(text: str) -> Options:
    """Parse the options after ``>trim``, in any order.

    The options have the forms ``--name value``, ``--name=value`` and ``name=value``.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The options can't be read: {error}", "See >trim help.") from error
    typed: dict[str, object] = {}
    thresholds: list[str] = []
    while words:
        name, value = _take_next_option(words)
        if name == "threshold":
            thresholds.append(value)
        else:
            typed[name.replace("-", "_")] = (
                _parse_number_option(name, value) if name in NUMBER_OPTION_NAMES else value
            )
    return make_options(EnteredOptions(threshold=thresholds, **typed))  # type: ignore[arg-type]


def _take_next_option(words: list[str]) -> tuple[str, str]:
    word = words.pop(0)
    if word == IN_PLACE_WORD:
        raise UsageError(
            "Only Claude Code's command /trim can trim the open session",
            "If your client has the command /trim, type /trim here. To make a trimmed copy instead, type >trim.",
        )
    name, equals, value = word.removeprefix("--").partition("=")
    name = name.lower()
    if name not in NUMBER_OPTION_NAMES | OPTIONS_WITH_LIST_VALUES | {"threshold"} or (
        not equals and not word.startswith("--")
    ):
        raise UsageError(f"'{word}' is not an option of >trim", "See >trim help.")
    if not equals:
        if not words:
            raise UsageError(f"--{name} needs a value", "See >trim help.")
        value = words.pop(0)
    return name, value


def _parse_number_option(name: str, value: str) -> int:
    try:
        number = int(value)
    except ValueError as error:
        raise UsageError(f"--{name} needs a number, not '{value}'", "See >trim help.") from error
    if number < 0 and name != "assistant":
        raise UsageError(f"--{name} can't be less than 0")
    return number


def _parse_general_and_tool_thresholds(
    typed_thresholds: Sequence[str],
) -> tuple[int | None, dict[str, int]]:
    general_threshold: int | None = None
    thresholds_by_tool: dict[str, int] = {}
    for word in (part for text in typed_thresholds for part in _split_words(text)):
        tool, equals, count = word.rpartition("=")
        if not (count.isascii() and count.isdigit()) or len(count) > 9:
            raise UsageError(
                f"--threshold needs a number of characters, such as 500 (or Read=2000 for one tool), not '{word}'"
            )
        if equals:
            thresholds_by_tool[tool.lower()] = int(count)
        else:
            general_threshold = int(count)
    return general_threshold, thresholds_by_tool


def _parse_list_option(name: str, typed_value: str | None) -> tuple[str, ...]:
    """Split the typed value of a list option into words.

    An empty value raises UsageError, because an empty list in ``Options`` selects everything.
    """
    words = _split_words((typed_value or "").lower())
    if typed_value is not None and not words:
        raise UsageError(f"--{name} is empty", f"Give a value, or leave --{name} out.")
    return words


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())
