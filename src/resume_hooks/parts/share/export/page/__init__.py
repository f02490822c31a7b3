"""Render a document as one HTML file that works offline and without scripts, with folding, search and printing.

The page is written in chunks: the head with the content policy, the list of turns, the turns, the
end.

The page loads nothing: images are embedded, and the content policy names the only style and the
only script by their digests. Turns fold without the script. Search, copying and the switches need
it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache

from resume_hooks.clock import format_minute
from resume_hooks.parts.share.export.page.markup import Html, element, join_markup, start_tag
from resume_hooks.parts.share.export.page.texts import (
    code_markup,
    count_changed_lines,
    difference_markup,
    language_of,
    picture_markup,
    prose_markup,
    verbatim_markup,
)
from resume_hooks.parts.share.export.parts import (
    ASSISTANT,
    SPEAKERS,
    SUMMARY,
    AgentPart,
    CallPart,
    CarriedSession,
    EndPart,
    MediaPart,
    NotePart,
    Part,
    SessionPart,
    TextPart,
    ThinkingPart,
    TurnPart,
)
from resume_hooks.reading.render import fields_text
from resume_hooks.transcripts.records import FILE_KEYS, Record, file_from_input, objects, string

SHELLS = frozenset({"Bash", "PowerShell"})
PROSE_KEYS = ("plan", "prompt")  # tool inputs that are prose, such as a plan or a sub-agent's task
OPEN_LINES = 60  # edits with fewer changed lines than this are unfolded
SHORT_NOTE = 200  # notes with fewer characters than this are on the same line as their heading
UNFOLDED_TURNS = 3  # if a page has at most this many turns, they are unfolded
CARRIED_NOTICE = (
    "This file holds the session, too. To go on with it, in the folder of the project: "
    "resume-hooks import FILE."
)

_NUMBERED = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)


def document_as_page(
    document: Iterable[Part], sessions: Iterable[SessionPart], carried: CarriedSession | None = None
) -> Iterator[str]:
    """Yield the document as a page; ``sessions`` fill the list of turns, and ``carried`` is added at the end."""
    heads = list(sessions)
    yield from _page_head(heads)
    if carried:
        yield element(
            "aside",
            *(element("p", sentence) for sentence in (CARRIED_NOTICE, *carried.taken.sentences)),
            id="carries",
        )
    yield from _markup_of_document(
        document, unfolded=sum(len(head.turns) for head in heads) <= UNFOLDED_TURNS
    )
    yield Html(f"</main>\n{element('script', _read_own_file('page.js'))}\n")
    yield from carried.rows if carried else ()
    yield "</body>\n</html>\n"


def _page_head(heads: list[SessionPart]) -> Iterator[str]:
    title = heads[-1].title if heads else "Session"
    style, script = _read_own_file("page.css"), _read_own_file("page.js")
    digests = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    policy = (
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    ).format(*digests)
    metas = (
        element("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="robots", content="noindex"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="resume-hooks"),
        element("title", title),
        element("style", style),
    )
    yield "<!doctype html>\n"
    yield start_tag("html", lang="en") + "\n<head>\n" + "\n".join(metas) + "\n</head>\n<body>\n"
    yield element("a", "Skip to the conversation", href="#conversation", class_="skip") + "\n"
    yield _tool_bar(title) + "\n" + _turn_list(heads) + "\n"
    yield start_tag("main", id="conversation", tabindex="-1") + "\n"


def _tool_bar(title: str) -> Html:
    return element(
        "header",
        element("span", title, class_="name", dir="auto"),
        element(
            "div",
            element(
                "input",
                id="words",
                type="search",
                placeholder="Search",
                aria_label="Search",
                autocomplete="off",
            ),
            element("output", "", id="count", aria_live="polite"),
            _button("previous", "\N{UPWARDS ARROW}", "Previous hit (Shift+Enter)"),
            _button("next", "\N{DOWNWARDS ARROW}", "Next hit (Enter)"),
            _button("unfold", "Unfold", "Unfold everything"),
            _button("fold", "Fold", "Fold everything"),
            _button("theme", "\N{CIRCLE WITH RIGHT HALF BLACK}", "Light or dark"),
            class_="tools",
            role="search",
        ),
        class_="bar",
    )


def _button(name: str, label: str, title: str) -> Html:
    return element("button", label, id=name, type="button", title=title, aria_label=title)


def _turn_list(heads: list[SessionPart]) -> Html:
    """Return the list of turns, one list per session."""
    lists = []
    for index, head in enumerate(heads):
        rows = (
            element("li", element("a", element("span", f"{turn.number}", class_="number"), turn.words or "\N{EM DASH}",
                                  href=f"#{_anchor_of_turn(index, turn)}", dir="auto"), class_=turn.place)
            for turn in head.turns
        )  # fmt: skip
        if len(heads) > 1:
            name = element("p", head.title, class_="session", dir="auto")
        else:
            name = Html("")
        lists.append(join_markup([name, element("ol", *rows)]))
    return element(
        "nav",
        element("details", element("summary", "Turns"), *lists, open=True, id="turns"),
        element("a", "What was left out", href="#left-out", class_="end"),
        aria_label="Turns",
    )


def _anchor_of_turn(session_index: int, turn: TurnPart) -> str:
    """Return a turn's anchor: its number, with the session's number as a prefix from the second session on."""
    if session_index:
        return f"s{session_index + 1}t{turn.number}"
    return f"t{turn.number}"


def _markup_of_document(document: Iterable[Part], *, unfolded: bool) -> Iterator[str]:
    """Yield the markup of parts. An open turn is closed before the next turn, the next session and the end."""
    session, in_turn = -1, False
    for part in document:
        if in_turn and isinstance(part, (SessionPart, TurnPart, EndPart)):
            in_turn = False
            yield "</div></details>\n"
        if isinstance(part, SessionPart):
            session += 1
            facts = (
                join_markup([element("dt", name), element("dd", value, dir="auto")])
                for name, value in part.facts
            )
            title = element("h1", part.title, dir="auto")
            yield element("section", title, element("dl", *facts), class_="about") + "\n"
        elif isinstance(part, TurnPart):
            in_turn = True
            yield (
                _turn_markup(part, _anchor_of_turn(max(session, 0), part), unfolded=unfolded) + "\n"
            )
        elif isinstance(part, EndPart):
            yield (
                element(
                    "footer",
                    *(element("p", sentence) for sentence in part.sentences),
                    id="left-out",
                )
                + "\n"
            )
        else:
            yield from _part_markup(part)


def _turn_markup(turn: TurnPart, anchor: str, *, unfolded: bool) -> Html:
    head = element(
        "summary",
        element(
            "a",
            f"{turn.number}",
            href=f"#{anchor}",
            class_="number",
            title=f"Link to Turn {turn.number}",
        ),
        element(
            "span",
            element("span", turn.words or "\N{EM DASH}", class_="words", dir="auto"),
            element("span", " \N{MIDDLE DOT} ".join(turn.facts), class_="facts"),
            class_="head",
        ),
    )
    classes = f"turn {turn.place}"
    return Html(
        f"{start_tag('details', class_=classes, id=anchor, open=unfolded)}{head}{start_tag('div', class_='body')}"
    )


def _part_markup(part: Part) -> Iterator[str]:
    match part:
        case CallPart():
            yield from _call_markup(part)
        case AgentPart():
            yield from _agent_markup(part)
        case TextPart():
            yield _text_markup(part) + "\n"
        case ThinkingPart():
            yield (
                element(
                    "details",
                    element("summary", "Thinking"),
                    prose_markup(part.text),
                    class_="thought unit",
                )
                + "\n"
            )
        case NotePart():
            yield _note_markup(element("b", part.what), part.text) + "\n"
        case MediaPart():
            yield element("div", picture_markup(part), class_="unit") + "\n"


def _note_markup(head: Html, text: str) -> Html:
    if not text.strip():
        return element("p", head, class_="note unit")
    if "\n" not in text and len(text) < SHORT_NOTE:
        return element("p", head, f" {text}", class_="note unit", dir="auto")
    return element("details", element("summary", head), code_markup(text), class_="note unit")


def _text_markup(part: TextPart) -> Html:
    if part.time:
        time = element("time", format_minute(part.time)[11:], datetime=part.time, title=part.time)
    else:
        time = Html("")
    speaker = element("p", element("b", SPEAKERS[part.who]), time, class_="who")
    if part.who == SUMMARY:
        return element("details", element("summary", "Summary that the model went on from"), prose_markup(part.text),
                       class_="summary unit")  # fmt: skip
    if part.who == ASSISTANT:
        body = prose_markup(part.text)
    else:
        body = verbatim_markup(part.text)
    return element("article", speaker, body, class_=f"said {part.who} unit")


def _call_markup(call: CallPart) -> Iterator[str]:
    if call.answer and call.answer.failed:
        classes = "call failed"
    else:
        classes = "call"
    lines = sum(old.count("\n") + new.count("\n") for old, new in _edits_of_call(call))
    unfolded = bool(call.tasks) or (bool(_edits_of_call(call)) and lines < OPEN_LINES)
    yield start_tag("details", class_=f"{classes} unit", open=unfolded)
    yield f"{_call_summary(call)}{_input_markup(call)}"
    if call.agent is not None:
        yield from _agent_markup(call.agent)
    yield f"{_answer_markup(call)}</details>\n"


def _edits_of_call(call: CallPart) -> list[tuple[str, str]]:
    """Return the pairs of old and new text in an edit.

    If the call wrote a whole file, the old text is empty.
    """
    inputs = call.given
    edits = inputs.get("edits")
    edit_inputs = objects(edits) if isinstance(edits, list) else [inputs]
    pairs = []
    for edit in edit_inputs:
        pairs.append((string(edit, "old_string"), string(edit, "new_string")))
    if call.tool == "Write":
        written = string(inputs, "content")
    else:
        written = string(inputs, "new_source")
    return [pair for pair in pairs if any(pair)] or ([("", written)] if written else [])


def _call_summary(call: CallPart) -> Html:
    counts = []
    for old, new in _edits_of_call(call):
        counts.append(count_changed_lines(old, new))
    removed, added = sum(count[0] for count in counts), sum(count[1] for count in counts)
    badges = (
        element("span", f"+{added}", class_="plus") if added else "",
        element("span", f"\N{MINUS SIGN}{removed}", class_="minus") if removed else "",
        element("span", call.state, class_="failed") if call.state else "",
    )
    if call.tool in SHELLS:
        description = string(call.given, "description")
    else:
        description = ""
    return element(
        "summary",
        element("b", call.name), *badges, " ",
        element("code", call.about, dir="ltr") if call.about else "",
        element("span", f" {description}", class_="why") if description else "",
    )  # fmt: skip


def _input_markup(call: CallPart) -> Html:
    if tasks := call.tasks:
        rows = (element("li", words, class_=status if status in {"completed", "in_progress"} else "pending")
                for status, words in tasks)  # fmt: skip
        return element("ul", *rows, class_="tasks")
    if edits := _edits_of_call(call):
        language = language_of(file_from_input(call.given))
        return join_markup(
            difference_markup(old, new) if old else code_markup(new, language, "input")
            for old, new in edits
        )
    return join_markup(_plain_inputs(call))


def _plain_inputs(call: CallPart) -> Iterator[Html]:
    remaining: Record = dict(call.given)
    command = string(remaining, "command")
    if call.tool in SHELLS and command:
        yield code_markup(command, "bash", "command")
        remaining = {
            key: value for key, value in remaining.items() if key not in {"command", "description"}
        }
    for key in PROSE_KEYS:
        if words := string(remaining, key):
            yield prose_markup(words)
            remaining.pop(key)
    if file_from_input(remaining):
        remaining = {key: value for key, value in remaining.items() if key not in FILE_KEYS}
    if fields := fields_text(remaining):
        yield code_markup(fields, "", "input")


def _answer_markup(call: CallPart) -> Html:
    if call.answer is None:
        return Html("")
    parts = []
    for part in call.answer.parts:
        if not isinstance(part, str):
            parts.append(picture_markup(part))
        elif call.agent is not None or call.tool in {"Agent", "Task"}:
            parts.append(prose_markup(part))
        else:
            numbered = call.tool == "Read" and bool(_NUMBERED.match(part))
            text = _NUMBERED.sub("", part) if numbered else part
            parts.append(
                code_markup(
                    text, language_of(file_from_input(call.given)) if numbered else "", "output"
                )
            )
    return element("div", *parts, class_="answer failed" if call.answer.failed else "answer")


def _agent_markup(agent: AgentPart) -> Iterator[str]:
    yield start_tag("details", class_="agent")
    yield element(
        "summary", element("b", "Sub-agent"), f" {agent.kind} ", element("code", agent.name)
    )
    for part in agent.parts:
        yield from _part_markup(part)
    yield "</details>\n"


@cache
def _read_own_file(name: str) -> Html:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as stream:
        return Html(stream.read())
