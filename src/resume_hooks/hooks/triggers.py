"""The table of triggers, and the functions that recognise a trigger in a prompt.

A trigger begins at the first character of a prompt. Every other prompt passes unchanged. This
module uses only the standard library and must run on Python 3.9.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional

from resume_hooks import part_table, seam
from resume_hooks.seam import Trigger as Row
from resume_hooks.shared_values import (
    COMMAND_PREFIX,
    MODEL_TIMEOUT_MINUTES,
    MODEL_TIMEOUT_TEXT,
    PLUGIN_NAME,
)

TYPED_SIGN, BARE_SIGN = ">", "/"
"""The first character of a trigger: ``TYPED_SIGN`` in a prompt, and ``BARE_SIGN`` in a command that
hooks/register.mjs registers. ``COMMAND_PREFIX`` works in every client."""

REPAIR_QUESTION = "fsck"
"""A question that the module asks by itself, not for a user. If answering it fails, the user sees
nothing."""

_HOOKS_PACKAGE_NAME = __package__
_CORE_TRIGGER_ROWS = (
    Row("handoff", "[size] [--new-task] [next step]",
        "Continue in a new session that knows this one; size: 4k, 12k, 24k, or all for a copy",
        module=f"{_HOOKS_PACKAGE_NAME}.handoff",
        help_row="handoff [size] [step] continue in a new session; size: 4k, 12k, 24k, or all",
        command="handoff"),
    Row("rollover", "[focus]",
        f"Continue in a new session with a model's summary; costs tokens and takes up to {MODEL_TIMEOUT_TEXT}",
        module=f"{_HOOKS_PACKAGE_NAME}.rollover",
        help_row=f"rollover [focus]      handoff with a model's summary: costs tokens, "
        f"{MODEL_TIMEOUT_MINUTES} minutes",
        command="rollover"),
    Row("trim", "[options]", "Continue in a copy without old tool output; asks first",
        module=f"{_HOOKS_PACKAGE_NAME}.trim",
        help_row="trim [options]        continue in a copy without old tool output; asks first",
        command="trim", asks_first=True),
    Row("untrim", "", "Continue in a copy with the trimmed contents restored",
        module=f"{_HOOKS_PACKAGE_NAME}.trim", command="untrim", needs_client_module=True),
    Row("resume", "[--table]", "Show how full this session is and the best way to continue",
        module=f"{_HOOKS_PACKAGE_NAME}.resume_card",
        help_row="resume                how full this session is, what to do next; copies its id",
        aliases=("continue",), command="full", is_read_only=True),
    Row("search", "[--all] words", "Find what was said in this project; --all: in every project",
        module=f"{_HOOKS_PACKAGE_NAME}.search",
        help_row="search [--all] words  find what was said in this project, or in all",
        command="search", is_read_only=True),
    Row("sessions", "[--all]", "List the newest sessions of this project; --all: of every project",
        module=f"{_HOOKS_PACKAGE_NAME}.sessions", command="sessions", is_read_only=True, needs_client_module=True),
    Row("session", "", "Copy this session's id",
        help_row="session, lineage, recall  its id, its ancestors, what was done", aliases=("session-id",),
        takes_no_words=True),
    Row("lineage", "", "Show this session's ancestors, oldest first",
        module=f"{_HOOKS_PACKAGE_NAME}.lineage", command="lineage", takes_no_words=True, is_read_only=True),
    Row("recall", "", "Show what was done here, to paste if the model has lost it",
        module=f"{_HOOKS_PACKAGE_NAME}.recover", command="recall", takes_no_words=True, is_read_only=True),
    Row("help", "", "List the commands", takes_no_words=True),
    Row(REPAIR_QUESTION, "", "", module=f"{_HOOKS_PACKAGE_NAME}.fsck", needs_client_module=True),
)  # fmt: skip


def _list_all_rows() -> List[Row]:
    """Return all triggers, in the order of the help.

    The trigger of a part comes before the core's trigger that the field ``insert_before`` names.
    """
    part_rows = seam.list_triggers()
    rows = []
    for core_row in _CORE_TRIGGER_ROWS:
        for part_row in part_rows:
            if part_row.insert_before == core_row.name:
                rows.append(part_row)
        rows.append(core_row)
    return rows


TRIGGER_TABLE = {each.name: each for each in _list_all_rows()}
"""All triggers by name. ``make docs`` generates commands/, hooks/commands.mjs and
docs/older-clients.md."""

_FORMER_TRIGGER_NAMES = {
    name: now for name, (_, now) in part_table.FORMER_VERBS.items() if now in TRIGGER_TABLE
} | {"recover-context": "recall"}
TRIGGER_ALIASES = {
    **_FORMER_TRIGGER_NAMES,
    **{alias: each.name for each in TRIGGER_TABLE.values() for alias in each.aliases},
}
"""Other names of triggers, including those from earlier versions. No list shows these names."""

COMMAND_NOT_ALONE_HINT = (
    "a command runs only if it is alone in the input box; Enter again sends this text as it is"
)
"""The hint for a user who typed a command into an input box that already contained the next step.
"""

TYPED_VERBS = frozenset(
    each.name for each in TRIGGER_TABLE.values() if not each.needs_client_module
)
_VERBS_WITHOUT_WORDS = frozenset(
    each.name for each in TRIGGER_TABLE.values() if each.takes_no_words
)
_VERBS_BY_COMMAND = {each.command: each.name for each in TRIGGER_TABLE.values() if each.command}
_UUID_PATTERN = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TRIGGER_PATTERN = re.compile(
    rf"(?:>|/{PLUGIN_NAME}:)([a-z-]+?)(?:\s+(.*))?\s*\Z", re.IGNORECASE | re.DOTALL
)
_PASTE_TAG_PATTERN = re.compile(r"\s*</?pasted_content\b[^<>]*>")
"""Matches the tags that recent clients put around a long pasted text."""
_PASTED_COMMAND_PATTERN = (
    rf"(?:/resume\s+{_UUID_PATTERN}|claude --resume {_UUID_PATTERN}|/clear)\s*\Z"
)
_PASTED_COMMAND_AT_END_PATTERN = re.compile(_PASTED_COMMAND_PATTERN, re.IGNORECASE)
_WORDLESS_TRIGGER_NAMES_PATTERN = "|".join(
    sorted(
        _VERBS_WITHOUT_WORDS
        | {alias for alias, verb in TRIGGER_ALIASES.items() if verb in _VERBS_WITHOUT_WORDS}
    )
)
_PASTED_COMMAND_AFTER_TRIGGER_PATTERN = re.compile(
    rf"(?:>|/{PLUGIN_NAME}:)(?:{_WORDLESS_TRIGGER_NAMES_PATTERN})\s*{_PASTED_COMMAND_PATTERN}",
    re.IGNORECASE,
)
_ID_AFTER_TRIGGER_PATTERN = re.compile(
    rf"(?:>|/{PLUGIN_NAME}:)(?:resume|continue|session|session-id)({_UUID_PATTERN})\s*\Z",
    re.IGNORECASE,
)
_TRIGGER_SIGN_PATTERN = rf"(?:>|/{PLUGIN_NAME}:)"
_ASKING_TRIGGER_NAMES_PATTERN = "|".join(
    name
    for name in (*TRIGGER_TABLE, *TRIGGER_ALIASES)
    if TRIGGER_TABLE[TRIGGER_ALIASES.get(name, name)].asks_first
)
_RETYPED_TRIGGER_PATTERN = re.compile(
    rf"{_TRIGGER_SIGN_PATTERN}({_ASKING_TRIGGER_NAMES_PATTERN})(?=[\s>/]|\Z)", re.IGNORECASE
)
_TRIGGER_NAMES_PATTERN = "|".join(sorted({*TYPED_VERBS, *TRIGGER_ALIASES}, key=len, reverse=True))
_BARE_TRIGGER_NAMES_PATTERN = "|".join(sorted(_VERBS_BY_COMMAND, key=len, reverse=True))
_STACKED_TRIGGERS_PATTERN = re.compile(
    rf"(?:{_TRIGGER_SIGN_PATTERN}(?:{_TRIGGER_NAMES_PATTERN}))+(?=(?:{_TRIGGER_SIGN_PATTERN}(?:{_TRIGGER_NAMES_PATTERN})|{BARE_SIGN}(?:{_BARE_TRIGGER_NAMES_PATTERN}))(?:\s|\Z))",
    re.IGNORECASE,
)
_COMMAND_AT_START_PATTERN = re.compile(
    rf"{BARE_SIGN}({_BARE_TRIGGER_NAMES_PATTERN})(?=\s|\Z)", re.IGNORECASE
)
_COMMAND_AFTER_WORDS_PATTERN = re.compile(
    rf"(?<=\S)/{PLUGIN_NAME}:(?:{_TRIGGER_NAMES_PATTERN})(?=\s|\Z)", re.IGNORECASE
)
"""Matches a command after a restored prompt.

Some clients put a blocked prompt back into the input box, and the user types the next command after
it.
"""

_PROSE_START_PATTERN = re.compile(
    r"(?!(?:yes|no|cancel|help)\b)[^\W\d_]+[,:;]?\s+[^\W\d_]", re.IGNORECASE
)
_EXACT_YES_PATTERN = re.compile(r"\S+\s+yes\s*\Z", re.IGNORECASE)
_TRIGGER_NAME_PATTERN = re.compile(rf"(?<![^\s:]){TYPED_SIGN}({'|'.join(TYPED_VERBS)})(?![\w-])")
"""Matches the name of a trigger in one of our messages."""


class Trigger(NamedTuple):
    """A trigger in a prompt.

    ``verb`` is a name from ``TRIGGER_TABLE``, ``text`` the text after it. ``is_slash`` means that
    the client has emptied the input box. ``is_pasted_after_text`` means that a command was pasted after other
    text in the box. ``is_hooked`` is False for a slash command that no hook answers. ``sign`` is the
    sign with which the prompt begins. Answers use it to name other triggers.
    """

    verb: str
    text: str
    is_slash: bool
    is_pasted_after_text: bool
    is_hooked: bool = True
    sign: str = TYPED_SIGN

    def name_of_verb(self, verb: str) -> str:
        """Return the name of a verb's trigger as the user types it, with the same sign as this trigger.

        If the named trigger can't have that sign, return its command with a slash.
        """
        row = TRIGGER_TABLE.get(verb)
        is_bare = (
            row is not None and row.command and (row.needs_client_module or self.sign == BARE_SIGN)
        )
        if row and is_bare:
            return f"{BARE_SIGN}{row.command}"
        return f"{self.sign_of_unregistered_triggers}{verb}"

    @property
    def sign_of_unregistered_triggers(self) -> str:
        """The sign for triggers that the module does not register as commands."""
        if self.sign == TYPED_SIGN:
            return TYPED_SIGN
        return COMMAND_PREFIX

    def replace_trigger_names(self, message: str) -> str:
        """Return a message in which each trigger has the name that the user types."""
        return _TRIGGER_NAME_PATTERN.sub(lambda match: self.name_of_verb(match[1]), message)


def find_trigger_name(word: str) -> str:
    """Return the name of a trigger. ``word`` is its name, its command or one of its aliases.

    Return ``word`` itself if there is no such trigger.
    """
    return TRIGGER_ALIASES.get(word, _VERBS_BY_COMMAND.get(word, word))


def trigger_of_command(command: str, text: str, *, is_hooked: bool = True) -> Trigger:
    """Return the trigger for a command that the user typed, or for a question that the module asks."""
    if command.startswith(COMMAND_PREFIX[1:]):
        sign, verb = (COMMAND_PREFIX, command[len(COMMAND_PREFIX) - 1 :])
    else:
        sign, verb = (BARE_SIGN, command)
    if sign == BARE_SIGN:
        verb = _VERBS_BY_COMMAND.get(verb, verb)
    else:
        verb = TRIGGER_ALIASES.get(verb, verb)
    return Trigger(
        verb, text, is_slash=True, is_pasted_after_text=False, is_hooked=is_hooked, sign=sign
    )


def recognise_trigger(prompt: str) -> Optional[Trigger]:
    """Return the trigger in a prompt, or None if the prompt is not a trigger."""
    slash, sign = prompt[:1] == "/", COMMAND_PREFIX if prompt[:1] == "/" else TYPED_SIGN
    # The client put a trigger without words back into the box, and the user typed another one after
    # it.
    stacked_triggers = _STACKED_TRIGGERS_PATTERN.match(prompt)
    if stacked_triggers:
        prompt = prompt[stacked_triggers.end() :]
        command_after = _COMMAND_AT_START_PATTERN.match(prompt)
        if command_after:
            prompt = f"{TYPED_SIGN}{_VERBS_BY_COMMAND[command_after[1].lower()]}{prompt[command_after.end() :]}"
    prompt = _last_retyped_trigger(_extract_command_after_words(prompt))
    if _ID_AFTER_TRIGGER_PATTERN.match(prompt):
        return Trigger("resume", "", slash, is_pasted_after_text=True, sign=sign)
    if _contains_pasted_command(prompt):
        leftover_text = _PASTED_COMMAND_AT_END_PATTERN.sub(
            "",
            re.sub(rf"\A{_TRIGGER_SIGN_PATTERN}[a-z-]+", "", prompt, count=1, flags=re.IGNORECASE),
        )
        return Trigger(
            _find_leading_verb(prompt),
            leftover_text.strip(),
            slash,
            is_pasted_after_text=True,
            sign=sign,
        )
    match = _TRIGGER_PATTERN.match(prompt)
    if match is None:
        return None
    verb = _canonical_word(match.group(1))
    text = _PASTE_TAG_PATTERN.sub("", match.group(2) or "").strip()
    if (
        verb not in TYPED_VERBS
        or (text and verb in _VERBS_WITHOUT_WORDS)
        or (text and not slash and _is_prose(verb, text, prompt))
    ):
        return None
    return Trigger(verb, text, slash, is_pasted_after_text=False, sign=sign)


def _is_prose(verb: str, text: str, prompt: str) -> bool:
    """Check whether the prompt is text, such as ``>resume the work``, or a quotation of several lines."""
    if verb in {"resume", "trim"} and _PROSE_START_PATTERN.match(text):
        return True
    other_lines = []
    for line in prompt.split("\n")[1:]:
        if line.strip():
            other_lines.append(line)
    return bool(other_lines) and all(line.startswith(">") for line in other_lines)


def _extract_command_after_words(prompt: str) -> str:
    """Return the command that the user typed after a restored prompt. Return any other prompt unchanged."""
    trigger = _TRIGGER_PATTERN.match(prompt)
    if trigger is None or _canonical_word(trigger.group(1)) not in TYPED_VERBS:
        return prompt
    starts = [command.start() for command in _COMMAND_AFTER_WORDS_PATTERN.finditer(prompt)]
    if starts:
        return prompt[starts[-1] :]
    return prompt


def _last_retyped_trigger(prompt: str) -> str:
    """Return the end of a prompt that begins with the retyped trigger, or else the whole prompt.

    When a prompt is blocked, the client puts it back into the input box, and the user types the
    trigger again behind it to answer the question. The options of a trim never contain a trigger,
    so the last ``>trim`` counts. The text after any other trigger may mention that trigger, so its
    repetition after a space counts only if ``yes`` follows it.
    """
    match = _RETYPED_TRIGGER_PATTERN.match(prompt)
    if match is None:
        return prompt
    verb = _canonical_word(match.group(1))
    names = "|".join(
        (
            verb,
            *(alias for alias, verb_of_alias in TRIGGER_ALIASES.items() if verb_of_alias == verb),
        )
    )
    repeats = re.finditer(rf"{_TRIGGER_SIGN_PATTERN}(?:{names})(?=\s|\Z)", prompt, re.IGNORECASE)
    positions = [repeat.start() for repeat in repeats]
    if verb != "trim":
        positions = [
            position
            for position in positions
            if not position
            or not prompt[position - 1].isspace()
            or _EXACT_YES_PATTERN.match(prompt, position)
        ]
    if positions:
        return prompt[positions[-1] :]
    return prompt


def _contains_pasted_command(prompt: str) -> bool:
    """Check whether one of our commands, or ``/clear``, was pasted after a trigger in the input box.

    If the trigger takes no words, other words in between make the prompt ordinary text, for example
    ``>help me understand /clear``.
    """
    verb = _find_leading_verb(prompt)
    if verb in _VERBS_WITHOUT_WORDS:
        return _PASTED_COMMAND_AFTER_TRIGGER_PATTERN.match(prompt) is not None
    return verb in TYPED_VERBS and _PASTED_COMMAND_AT_END_PATTERN.search(prompt[-120:]) is not None


def _find_leading_verb(prompt: str) -> str:
    """Return the verb with which a prompt begins. A pasted ``/command`` may follow without a space."""
    match = re.match(rf"(?:>|/{PLUGIN_NAME}:)([a-z-]+)(?=[\s/])", prompt, re.IGNORECASE)
    if match:
        return _canonical_word(match.group(1))
    return ""


def _canonical_word(word: str) -> str:
    word = word.lower()
    return TRIGGER_ALIASES.get(word, word)
