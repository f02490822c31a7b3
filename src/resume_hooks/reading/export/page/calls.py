"""Calls of tools on the page: a line that says what was done, and below it, folded, what went in and what came back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.reading.export.page.code import changed, code, difference, language_of, picture
from resume_hooks.reading.export.page.markup import Html, element, joined
from resume_hooks.reading.export.page.prose import prose
from resume_hooks.reading.export.parts import CallPart, called_name, state_of, tasks_of
from resume_hooks.reading.render import fields_text
from resume_hooks.transcripts.records import FILE_KEYS, Record, objects, string

SHELLS = frozenset({"Bash", "PowerShell"})
PROSE = ("plan", "prompt")  # inputs that are written for reading: a plan, the task of a sub-agent
OPEN_LINES = 60  # changed lines up to which an edit is shown unfolded

_NUMBERED = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)


def edits_of(called: CallPart) -> list[tuple[str, str]]:
    """The texts that an edit replaced, each with what came in its place; a written file came in place of nothing."""
    given = called.given
    rows = given.get("edits")
    found = objects(rows) if isinstance(rows, list) else [given]
    pairs = [(string(row, "old_string"), string(row, "new_string")) for row in found]
    written = string(given, "content") if called.tool == "Write" else string(given, "new_source")
    return [pair for pair in pairs if any(pair)] or ([("", written)] if written else [])


def summary(called: CallPart) -> Html:
    """The line of a call."""
    counts = [changed(old, new) for old, new in edits_of(called)]
    gone, come = sum(count[0] for count in counts), sum(count[1] for count in counts)
    state = state_of(called)
    badges = (
        element("span", f"+{come}", class_="plus") if come else "",
        element("span", f"\N{MINUS SIGN}{gone}", class_="minus") if gone else "",
        element("span", state, class_="failed") if state else "",
    )
    about = string(called.given, "description") if called.tool in SHELLS else ""
    return element(
        "summary",
        element("b", called_name(called)), *badges, " ",
        element("code", called.about, dir="ltr") if called.about else "",
        element("span", f" {about}", class_="why") if about else "",
    )  # fmt: skip


def is_open(called: CallPart) -> bool:
    """Whether a call is shown unfolded: tasks, and edits that are not long."""
    lines = sum(old.count("\n") + new.count("\n") for old, new in edits_of(called))
    return bool(tasks_of(called.given)) or (bool(edits_of(called)) and lines < OPEN_LINES)


def given(called: CallPart) -> Html:
    """What went into a call."""
    if tasks := tasks_of(called.given):
        rows = (element("li", words, class_=status if status in {"completed", "in_progress"} else "pending")
                for status, words in tasks)  # fmt: skip
        return element("ul", *rows, class_="tasks")
    if edits := edits_of(called):
        language = language_of(_path(called.given))
        return joined(difference(old, new) if old else code(new, language, "input") for old, new in edits)
    return joined(_inputs(called))


def _inputs(called: CallPart) -> Iterator[Html]:
    left: Record = dict(called.given)
    command = string(left, "command")
    if called.tool in SHELLS and command:
        yield code(command, "bash", "command")
        left = {key: value for key, value in left.items() if key not in {"command", "description"}}
    for key in PROSE:
        if words := string(left, key):
            yield prose(words)
            left.pop(key)
    if _path(left):
        left = {key: value for key, value in left.items() if key not in FILE_KEYS}
    if said := fields_text(left):
        yield code(said, "", "input")


def answer(called: CallPart) -> Html:
    """What came back."""
    if called.answer is None:
        return Html("")
    parts = []
    for part in called.answer.parts:
        if not isinstance(part, str):
            parts.append(picture(part))
        elif called.agent is not None or called.tool in {"Agent", "Task"}:
            parts.append(prose(part))
        else:
            numbered = called.tool == "Read" and bool(_NUMBERED.match(part))
            text = _NUMBERED.sub("", part) if numbered else part
            parts.append(code(text, language_of(_path(called.given)) if numbered else "", "output"))
    return element("div", *parts, class_="answer failed" if called.answer.failed else "answer")


def _path(given_: Record) -> str:
    return next((path for key in FILE_KEYS if (path := string(given_, key))), "")
