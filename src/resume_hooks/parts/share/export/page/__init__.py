"""Format a document as one HTML file that works offline and can be read without its script.

The page is written in this order: the head with the content security policy, the list of turns, the
turns, the end. The page loads nothing, and images are embedded. The policy allows only the page's
own style and script, which it identifies by their digests. Turns can be unfolded without the
script, which is needed only for searching, for copying and for the switches.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache

from resume_hooks.clock import format_minute
from resume_hooks.parts.share.export.page.markup import (
    Html,
    build_element,
    build_start_tag,
    join_markup,
)
from resume_hooks.parts.share.export.page.texts import (
    build_code_markup,
    build_difference_markup,
    build_picture_markup,
    build_prose_markup,
    build_verbatim_markup,
    count_changed_lines,
    find_language,
)
from resume_hooks.parts.share.export.parts import (
    ASSISTANT,
    SPEAKER_NAMES,
    SUMMARY,
    AgentPart,
    CallPart,
    EmbeddedSession,
    EndPart,
    MediaPart,
    NotePart,
    Part,
    SessionPart,
    TextPart,
    ThinkingPart,
    TurnHeader,
)
from resume_hooks.reading.render import format_fields
from resume_hooks.transcripts.records import (
    FILE_PATH_INPUT_NAMES,
    Record,
    file_path_from_input,
    get_string,
    list_objects,
)

SHELL_TOOL_NAMES = frozenset({"Bash", "PowerShell"})
# The tool inputs that contain prose, such as a plan or a sub-agent's task.
PROSE_ARGUMENT_NAMES = ("plan", "prompt")
MIN_LINES_TO_FOLD = (
    60  # An edit is shown folded if it has at least this number of removed and added lines.
)
# A note whose text has fewer characters than this is shown on one line with its heading.
MAX_UNFOLDED_NOTE_CHARACTERS = 200
MAX_UNFOLDED_TURNS = 3  # If a page has no more than this number of turns, all turns are unfolded.
EMBEDDED_SESSION_NOTICE = (
    "This file also contains the session. To continue it, in the folder of the project: "
    "resume-hooks import FILE."
)

_NUMBERED_LINE_PATTERN = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)


def build_page(
    document_parts: Iterable[Part],
    sessions: Iterable[SessionPart],
    embedded_session: EmbeddedSession | None = None,
) -> Iterator[str]:
    """Yield the markup of a page.

    ``document_parts`` contains the parts of the page. ``sessions`` contains the headers of the sessions,
    from which the list of turns is made. ``embedded_session`` is a bundle to include at the end of
    the page.
    """
    session_headers = list(sessions)
    yield from _build_page_head(session_headers)
    if embedded_session:
        yield build_element(
            "aside",
            *(
                build_element("p", sentence)
                for sentence in (
                    EMBEDDED_SESSION_NOTICE,
                    *embedded_session.end_part.summary_sentences,
                )
            ),
            id="carries",
        )
    yield from _build_document_markup(
        document_parts,
        is_unfolded=sum(len(head.turns) for head in session_headers) <= MAX_UNFOLDED_TURNS,
    )
    yield Html(f"</main>\n{build_element('script', _read_page_file('page.js'))}\n")
    yield from embedded_session.markup_rows if embedded_session else ()
    yield "</body>\n</html>\n"


def _build_page_head(session_headers: list[SessionPart]) -> Iterator[str]:
    title = session_headers[-1].title if session_headers else "Session"
    style, script = _read_page_file("page.css"), _read_page_file("page.js")
    digests = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    policy = (
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    ).format(*digests)
    meta_elements = (
        build_element("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        build_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        build_element("meta", name="referrer", content="no-referrer"),
        build_element("meta", name="robots", content="noindex"),
        build_element("meta", name="color-scheme", content="light dark"),
        build_element("meta", name="generator", content="resume-hooks"),
        build_element("title", title),
        build_element("style", style),
    )
    yield "<!doctype html>\n"
    yield (
        build_start_tag("html", lang="en")
        + "\n<head>\n"
        + "\n".join(meta_elements)
        + "\n</head>\n<body>\n"
    )
    yield build_element("a", "Skip to the conversation", href="#conversation", class_="skip") + "\n"
    yield _build_tool_bar(title) + "\n" + _build_turn_list(session_headers) + "\n"
    yield build_start_tag("main", id="conversation", tabindex="-1") + "\n"


def _build_tool_bar(title: str) -> Html:
    return build_element(
        "header",
        build_element("span", title, class_="name", dir="auto"),
        build_element(
            "div",
            build_element(
                "input",
                id="words",
                type="search",
                placeholder="Search",
                aria_label="Search",
                autocomplete="off",
            ),
            build_element("output", "", id="count", aria_live="polite"),
            _build_button("previous", "\N{UPWARDS ARROW}", "Previous hit (Shift+Enter)"),
            _build_button("next", "\N{DOWNWARDS ARROW}", "Next hit (Enter)"),
            _build_button("unfold", "Unfold", "Unfold everything"),
            _build_button("fold", "Fold", "Fold everything"),
            _build_button("theme", "\N{CIRCLE WITH RIGHT HALF BLACK}", "Light or dark"),
            class_="tools",
            role="search",
        ),
        class_="bar",
    )


def _build_button(name: str, label: str, title: str) -> Html:
    return build_element("button", label, id=name, type="button", title=title, aria_label=title)


def _build_turn_list(session_headers: list[SessionPart]) -> Html:
    """Return the lists of turns as markup. There is one list for each session."""
    turn_lists = []
    for index, head in enumerate(session_headers):
        rows = []
        for turn in head.turns:
            link = build_element(
                "a",
                build_element("span", f"{turn.turn_number}", class_="number"),
                turn.first_words or "\N{EM DASH}",
                href=f"#{_format_turn_anchor(index, turn)}",
                dir="auto",
            )
            rows.append(build_element("li", link, class_=turn.state))
        if len(session_headers) > 1:
            name = build_element("p", head.title, class_="session", dir="auto")
        else:
            name = Html("")
        turn_lists.append(join_markup([name, build_element("ol", *rows)]))
    return build_element(
        "nav",
        build_element(
            "details", build_element("summary", "Turns"), *turn_lists, open=True, id="turns"
        ),
        build_element("a", "What was left out", href="#left-out", class_="end"),
        aria_label="Turns",
    )


def _format_turn_anchor(session_index: int, turn: TurnHeader) -> str:
    """Return the HTML id of a turn, for example ``t3``, or ``s2t3`` in the second session."""
    if session_index:
        return f"s{session_index + 1}t{turn.turn_number}"
    return f"t{turn.turn_number}"


def _build_document_markup(document: Iterable[Part], *, is_unfolded: bool) -> Iterator[str]:
    """Yield the markup of the parts.

    The element of a turn contains all parts of the turn. It is closed when the next turn or session
    begins, or at the end of the document.
    """
    session, in_turn = -1, False
    for part in document:
        if in_turn and isinstance(part, (SessionPart, TurnHeader, EndPart)):
            in_turn = False
            yield "</div></details>\n"
        if isinstance(part, SessionPart):
            session += 1
            fact_elements = (
                join_markup([build_element("dt", name), build_element("dd", value, dir="auto")])
                for name, value in part.header_rows
            )
            title = build_element("h1", part.title, dir="auto")
            yield (
                build_element("section", title, build_element("dl", *fact_elements), class_="about")
                + "\n"
            )
        elif isinstance(part, TurnHeader):
            in_turn = True
            yield (
                _build_turn_markup(
                    part, _format_turn_anchor(max(session, 0), part), is_unfolded=is_unfolded
                )
                + "\n"
            )
        elif isinstance(part, EndPart):
            yield (
                build_element(
                    "footer",
                    *(build_element("p", sentence) for sentence in part.summary_sentences),
                    id="left-out",
                )
                + "\n"
            )
        else:
            yield from _build_part_markup(part)


def _build_turn_markup(turn: TurnHeader, anchor: str, *, is_unfolded: bool) -> Html:
    head = build_element(
        "summary",
        build_element(
            "a",
            f"{turn.turn_number}",
            href=f"#{anchor}",
            class_="number",
            title=f"Link to Turn {turn.turn_number}",
        ),
        build_element(
            "span",
            build_element("span", turn.first_words or "\N{EM DASH}", class_="words", dir="auto"),
            build_element("span", " \N{MIDDLE DOT} ".join(turn.header_phrases), class_="facts"),
            class_="head",
        ),
    )
    classes = f"turn {turn.state}"
    details_tag = build_start_tag("details", class_=classes, id=anchor, open=is_unfolded)
    return Html(f"{details_tag}{head}{build_start_tag('div', class_='body')}")


def _build_part_markup(part: Part) -> Iterator[str]:
    match part:
        case CallPart():
            yield from _build_call_markup(part)
        case AgentPart():
            yield from _build_agent_markup(part)
        case TextPart():
            yield _build_text_markup(part) + "\n"
        case ThinkingPart():
            yield (
                build_element(
                    "details",
                    build_element("summary", "Thinking"),
                    build_prose_markup(part.text),
                    class_="thought unit",
                )
                + "\n"
            )
        case NotePart():
            yield _build_note_markup(build_element("b", part.title), part.text) + "\n"
        case MediaPart():
            yield build_element("div", build_picture_markup(part), class_="unit") + "\n"


def _build_note_markup(heading: Html, text: str) -> Html:
    if not text.strip():
        return build_element("p", heading, class_="note unit")
    if "\n" not in text and len(text) < MAX_UNFOLDED_NOTE_CHARACTERS:
        return build_element("p", heading, f" {text}", class_="note unit", dir="auto")
    return build_element(
        "details", build_element("summary", heading), build_code_markup(text), class_="note unit"
    )


def _build_text_markup(part: TextPart) -> Html:
    if part.time:
        time = build_element(
            "time", format_minute(part.time)[11:], datetime=part.time, title=part.time
        )
    else:
        time = Html("")
    speaker = build_element(
        "p", build_element("b", SPEAKER_NAMES[part.speaker]), time, class_="who"
    )
    if part.speaker == SUMMARY:
        heading = build_element("summary", "Summary from which the model continued")
        return build_element(
            "details", heading, build_prose_markup(part.text), class_="summary unit"
        )
    if part.speaker == ASSISTANT:
        body = build_prose_markup(part.text)
    else:
        body = build_verbatim_markup(part.text)
    return build_element("article", speaker, body, class_=f"said {part.speaker} unit")


def _build_call_markup(call: CallPart) -> Iterator[str]:
    if call.result and call.result.is_failure:
        classes = "call failed"
    else:
        classes = "call"
    line_count = sum(
        old_text.count("\n") + new_text.count("\n")
        for old_text, new_text in _read_old_and_new_texts(call)
    )
    is_unfolded = bool(call.todo_states_and_texts) or (
        bool(_read_old_and_new_texts(call)) and line_count < MIN_LINES_TO_FOLD
    )
    yield build_start_tag("details", class_=f"{classes} unit", open=is_unfolded)
    yield f"{_build_call_summary(call)}{_build_input_markup(call)}"
    if call.agent is not None:
        yield from _build_agent_markup(call.agent)
    yield f"{_build_result_markup(call)}</details>\n"


def _read_old_and_new_texts(call: CallPart) -> list[tuple[str, str]]:
    """Return the pairs of old and new text in the input of an edit.

    If the call writes a whole file, the result is one pair whose old text is empty.
    """
    inputs = call.arguments
    edits = inputs.get("edits")
    edit_inputs = list_objects(edits) if isinstance(edits, list) else [inputs]
    text_pairs = []
    for edit in edit_inputs:
        text_pairs.append((get_string(edit, "old_string"), get_string(edit, "new_string")))
    if call.tool == "Write":
        written_text = get_string(inputs, "content")
    else:
        written_text = get_string(inputs, "new_source")
    return [text_pair for text_pair in text_pairs if any(text_pair)] or (
        [("", written_text)] if written_text else []
    )


def _build_call_summary(call: CallPart) -> Html:
    line_counts = []
    for old_text, new_text in _read_old_and_new_texts(call):
        line_counts.append(count_changed_lines(old_text, new_text))
    removed_count, added_count = (
        sum(line_count[0] for line_count in line_counts),
        sum(line_count[1] for line_count in line_counts),
    )
    badges = (
        build_element("span", f"+{added_count}", class_="plus") if added_count else "",
        build_element("span", f"\N{MINUS SIGN}{removed_count}", class_="minus")
        if removed_count
        else "",
        build_element("span", call.status_text, class_="failed") if call.status_text else "",
    )
    if call.tool in SHELL_TOOL_NAMES:
        description = get_string(call.arguments, "description")
    else:
        description = ""
    return build_element(
        "summary",
        build_element("b", call.name), *badges, " ",
        build_element("code", call.description, dir="ltr") if call.description else "",
        build_element("span", f" {description}", class_="why") if description else "",
    )  # fmt: skip


def _build_input_markup(call: CallPart) -> Html:
    if tasks := call.todo_states_and_texts:
        rows = (build_element("li", task_text, class_=status if status in {"completed", "in_progress"} else "pending")
                for status, task_text in tasks)  # fmt: skip
        return build_element("ul", *rows, class_="tasks")
    if edits := _read_old_and_new_texts(call):
        language = find_language(file_path_from_input(call.arguments))
        return join_markup(
            build_difference_markup(old_text, new_text)
            if old_text
            else build_code_markup(new_text, language, "input")
            for old_text, new_text in edits
        )
    return join_markup(_build_plain_input_markup(call))


def _build_plain_input_markup(call: CallPart) -> Iterator[Html]:
    remaining_inputs: Record = dict(call.arguments)
    command = get_string(remaining_inputs, "command")
    if call.tool in SHELL_TOOL_NAMES and command:
        yield build_code_markup(command, "bash", "command")
        remaining_inputs = {
            key: value
            for key, value in remaining_inputs.items()
            if key not in {"command", "description"}
        }
    for key in PROSE_ARGUMENT_NAMES:
        if input_text := get_string(remaining_inputs, key):
            yield build_prose_markup(input_text)
            remaining_inputs.pop(key)
    if file_path_from_input(remaining_inputs):
        remaining_inputs = {
            key: value
            for key, value in remaining_inputs.items()
            if key not in FILE_PATH_INPUT_NAMES
        }
    if fields_markup := format_fields(remaining_inputs):
        yield build_code_markup(fields_markup, "", "input")


def _build_result_markup(call: CallPart) -> Html:
    if call.result is None:
        return Html("")
    parts = []
    for part in call.result.parts:
        if not isinstance(part, str):
            parts.append(build_picture_markup(part))
        elif call.agent is not None or call.tool in {"Agent", "Task"}:
            parts.append(build_prose_markup(part))
        else:
            is_numbered = call.tool == "Read" and bool(_NUMBERED_LINE_PATTERN.match(part))
            text = _NUMBERED_LINE_PATTERN.sub("", part) if is_numbered else part
            parts.append(
                build_code_markup(
                    text,
                    find_language(file_path_from_input(call.arguments)) if is_numbered else "",
                    "output",
                )
            )
    return build_element(
        "div", *parts, class_="answer failed" if call.result.is_failure else "answer"
    )


def _build_agent_markup(agent: AgentPart) -> Iterator[str]:
    yield build_start_tag("details", class_="agent")
    yield build_element(
        "summary",
        build_element("b", "Sub-agent"),
        f" {agent.kind} ",
        build_element("code", agent.name),
    )
    for part in agent.parts:
        yield from _build_part_markup(part)
    yield "</details>\n"


@cache
def _read_page_file(name: str) -> Html:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as stream:
        return Html(stream.read())
