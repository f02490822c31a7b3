"""Calls of tools on the page: a line that says what was done, and below it, folded, what went in and what came back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.parts.share.export.page.code import changed, code, difference, language_of, picture
from resume_hooks.parts.share.export.page.markup import Html, element, join
from resume_hooks.parts.share.export.page.prose import prose
from resume_hooks.parts.share.export.parts import CallPart
from resume_hooks.reading.render import fields_text
from resume_hooks.transcripts.records import FILE_KEYS, Record, file_in, objects, string

SHELLS = frozenset({"Bash", "PowerShell"})
PROSE = ("plan", "prompt")  # inputs that are written for reading: a plan, the task of a sub-agent
OPEN_LINES = 60  # changed lines up to which an edit is shown unfolded

_NUMBERED = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)


def edits_of(call: CallPart) -> list[tuple[str, str]]:
    """The texts that an edit replaced, each with what came in its place; a written file came in place of nothing."""
    given = call.given
    rows = given.get("edits")
    found = objects(rows) if isinstance(rows, list) else [given]
    pairs = [(string(row, "old_string"), string(row, "new_string")) for row in found]
    written = string(given, "content") if call.tool == "Write" else string(given, "new_source")
    return [pair for pair in pairs if any(pair)] or ([("", written)] if written else [])


def summary(call: CallPart) -> Html:
    """The line of a call."""
    counts = [changed(old, new) for old, new in edits_of(call)]
    gone, come = sum(count[0] for count in counts), sum(count[1] for count in counts)
    badges = (
        element("span", f"+{come}", class_="plus") if come else "",
        element("span", f"\N{MINUS SIGN}{gone}", class_="minus") if gone else "",
        element("span", call.state, class_="failed") if call.state else "",
    )
    about = string(call.given, "description") if call.tool in SHELLS else ""
    return element(
        "summary",
        element("b", call.name), *badges, " ",
        element("code", call.about, dir="ltr") if call.about else "",
        element("span", f" {about}", class_="why") if about else "",
    )  # fmt: skip


def is_open(call: CallPart) -> bool:
    """Whether a call is shown unfolded: tasks, and edits that are not long."""
    lines = sum(old.count("\n") + new.count("\n") for old, new in edits_of(call))
    return bool(call.tasks) or (bool(edits_of(call)) and lines < OPEN_LINES)


def given(call: CallPart) -> Html:
    """What went into a call."""
    if tasks := call.tasks:
        rows = (element("li", words, class_=status if status in {"completed", "in_progress"} else "pending")
                for status, words in tasks)  # fmt: skip
        return element("ul", *rows, class_="tasks")
    if edits := edits_of(call):
        language = language_of(file_in(call.given))
        return join(difference(old, new) if old else code(new, language, "input") for old, new in edits)
    return join(_inputs(call))


def _inputs(call: CallPart) -> Iterator[Html]:
    left: Record = dict(call.given)
    command = string(left, "command")
    if call.tool in SHELLS and command:
        yield code(command, "bash", "command")
        left = {key: value for key, value in left.items() if key not in {"command", "description"}}
    for key in PROSE:
        if words := string(left, key):
            yield prose(words)
            left.pop(key)
    if file_in(left):
        left = {key: value for key, value in left.items() if key not in FILE_KEYS}
    if said := fields_text(left):
        yield code(said, "", "input")


def answer(call: CallPart) -> Html:
    """What came back."""
    if call.answer is None:
        return Html("")
    parts = []
    for part in call.answer.parts:
        if not isinstance(part, str):
            parts.append(picture(part))
        elif call.agent is not None or call.tool in {"Agent", "Task"}:
            parts.append(prose(part))
        else:
            numbered = call.tool == "Read" and bool(_NUMBERED.match(part))
            text = _NUMBERED.sub("", part) if numbered else part
            parts.append(code(text, language_of(file_in(call.given)) if numbered else "", "output"))
    return element("div", *parts, class_="answer failed" if call.answer.failed else "answer")
