"""Format a document as Markdown for GitHub.

Each turn has a heading, and calls are folded. Code is in fences that are longer than any fence in
the code. The model's own Markdown is kept, but markup that could break the layout or load a
resource is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from resume_hooks.clock import format_minute
from resume_hooks.parts.share.export import parts
from resume_hooks.parts.share.export.parts import (
    ASSISTANT,
    CHECKBOX_CHARACTERS,
    SPEAKER_NAMES,
    SUMMARY,
    AgentPart,
    CallPart,
    Part,
)
from resume_hooks.reading.render import format_fields
from resume_hooks.system.text import collapse_line, plain_line, plain_text
from resume_hooks.transcripts.records import list_objects

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_SPECIAL_CHARACTERS_PATTERN = re.compile(r"([\\`*_{}\[\]#|~])")
_FENCE_PATTERN = re.compile(r" {0,3}(?:`{3,}[^`]*|~{3,}.*)")
_CLOSING_FENCE_PATTERN = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")
_CODE_SPAN_PATTERN = re.compile(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_UNSAFE_LINK_PATTERN = re.compile(r"\]\((?!(?:https?://|mailto:)[^\s)]*[)\s]|[\w#./~-]+[)\s])|\]:")
_BACKTICKS_PATTERN = re.compile(r"`+")


def format_document(document: Iterable[Part]) -> Iterator[str]:
    """Yield the text of the document as Markdown."""
    for part in document:
        if isinstance(part, CallPart):
            yield from _format_call(part)
        elif isinstance(part, AgentPart):
            yield from _format_agent(part)
        else:
            yield f"{_format_part(part)}\n\n"


def _format_part(part: Part) -> str:
    match part:
        case parts.SessionPart():
            fact_rows = "\n".join(
                f"| {name} | {escape_markdown(value)} |" for name, value in part.header_rows
            )
            rows = (
                f"{turn.turn_number}. [{escape_markdown(collapse_line(turn.first_words, 80))}](#t{turn.turn_number})"
                for turn in part.turns
            )
            table = (
                f"<details>\n<summary>Turns</summary>\n\n{chr(10).join(rows)}\n\n</details>"
                if part.turns
                else ""
            )
            return f"# {escape_markdown(part.title)}\n\n| | |\n|---|---|\n{fact_rows}\n\n{table}"
        case parts.TurnHeader():
            fact_rows = escape_markdown(" · ".join(part.header_phrases))
            first_words = escape_markdown(collapse_line(part.first_words, 80))
            return f'## <a id="t{part.turn_number}"></a>Turn {part.turn_number}: {first_words}\n\n{fact_rows}'
        case parts.TextPart():
            return _format_text(part)
        case parts.ThinkingPart():
            return _format_details_element("Thinking", fence_text(part.text))
        case parts.NotePart():
            return (
                _format_details_element(part.title, fence_text(part.text))
                if part.text
                else f"*{escape_markdown(part.title)}*"
            )
        case parts.MediaPart():
            return f"*{escape_markdown(part.description)}*"
        case parts.EndPart():
            return "---\n\n" + "\n".join(
                f"- {escape_markdown(sentence)}" for sentence in part.summary_sentences
            )
    return ""


def _format_text(part: parts.TextPart) -> str:
    heading = f"**{SPEAKER_NAMES[part.speaker]}**" + (
        f" · {format_minute(part.time)}" if part.time else ""
    )
    if part.speaker == ASSISTANT:
        return f"{heading}\n\n{make_markdown_safe(part.text)}"
    if part.speaker == SUMMARY:
        return _format_details_element(SPEAKER_NAMES[part.speaker], make_markdown_safe(part.text))
    # Tabs are replaced with spaces, because the ``>`` before each quoted line would move the tab
    # stops, and a line with a different indentation could become a fence.
    quoted_lines = make_markdown_safe(plain_text(part.text).expandtabs(4)).split("\n")
    return f"{heading}\n\n" + "\n".join(f"> {line}" if line else ">" for line in quoted_lines)


def _format_call(call: CallPart) -> Iterator[str]:
    state = f" ({call.status_text})" if call.status_text else ""
    description = f" {_escape_html(call.description)}" if call.description else ""
    yield f"<details>\n<summary><b>{_escape_html(call.name)}</b>{description}{state}</summary>\n\n"
    if call.todo_states_and_texts:
        yield (
            "\n".join(
                f"- [{CHECKBOX_CHARACTERS.get(status, ' ')}] {escape_markdown(task_text)}"
                for status, task_text in call.todo_states_and_texts
            )
            + "\n\n"
        )
    elif call.arguments:
        yield f"{_format_input(call)}\n\n"
    if call.agent is not None:
        yield from _format_agent(call.agent)
    if call.result is not None:
        yield f"{fence_text(call.result.text)}\n\n"
    yield "</details>\n\n"


def _format_input(call: CallPart) -> str:
    """Return the input of a call in a fence. For an edit, the fence shows old and new lines."""
    differences = []
    for edit in list_objects(call.arguments.get("edits")) or [call.arguments]:
        old_text, new_text = edit.get("old_string"), edit.get("new_string")
        if isinstance(old_text, str) and isinstance(new_text, str):
            differences.append(_format_difference(old_text, new_text))
    if differences:
        return fence_text("\n@@\n".join(differences), "diff")
    command = call.arguments.get("command")
    if isinstance(command, str):
        return fence_text(command, "sh")
    return fence_text(format_fields(call.arguments))


def _format_difference(old_text: str, new_text: str) -> str:
    """Return the old lines, each with the prefix ``-``, and then the new lines with the prefix ``+``."""
    removed_lines = [f"-{line}" for line in old_text.split("\n")] if old_text else []
    added_lines = [f"+{line}" for line in new_text.split("\n")] if new_text else []
    return "\n".join([*removed_lines, *added_lines])


def _format_agent(agent: AgentPart) -> Iterator[str]:
    yield f"<details>\n<summary>Sub-agent {_escape_html(agent.kind)} {_escape_html(agent.name)}</summary>\n\n"
    yield from format_document(agent.parts)
    yield "</details>\n\n"


def _format_details_element(title: str, body: str) -> str:
    return f"<details>\n<summary>{_escape_html(title)}</summary>\n\n{body}\n\n</details>"


def fence_text(text: str, language: str = "") -> str:
    """Return a text in a Markdown fence that is longer than any run of backticks in the text."""
    content = plain_text(text)
    longest_run = max((len(run) for run in _BACKTICKS_PATTERN.findall(content)), default=0)
    fence = "`" * max(3, longest_run + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def escape_markdown(text: str) -> str:
    """Return a text as one line in which all special characters of Markdown and HTML are escaped."""
    return _SPECIAL_CHARACTERS_PATTERN.sub(r"\\\1", _escape_html(text))


def _escape_html(text: str) -> str:
    return plain_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def make_markdown_safe(text: str) -> str:
    """Return Markdown that cannot change the formatting of the text around it.

    The result has no HTML and no images, its links lead only to web or mail addresses, and every
    fence is closed. All text is first escaped, so that HTML cannot affect where a fence begins or
    ends. Then the original text is restored in each fence that begins at the first column, outside
    lists and quotes. In a list or quote, the text stays escaped, because a fence may end early
    there, and the markup after its end would otherwise take effect.
    """
    original_lines = plain_text(text).split("\n")
    lines = [_make_markdown_line_safe(line) for line in original_lines]
    if not any(_FENCE_PATTERN.fullmatch(line) for line in lines):
        return "\n".join(lines)
    open_fence = ""
    for token in _build_block_parser().parse("\n".join(lines)):
        if token.type != "fence" or token.level or token.map is None:
            continue
        start_line, end_line = token.map
        closing_fence = _CLOSING_FENCE_PATTERN.fullmatch(lines[end_line - 1])
        if (
            end_line - start_line < 2
            or closing_fence is None
            or not closing_fence[1].startswith(token.markup)
        ):
            end_line, open_fence = len(lines), token.markup
        if original_lines[start_line].startswith(token.markup):
            lines[start_line + 1 : end_line] = original_lines[start_line + 1 : end_line]
    return "\n".join([*lines, open_fence] if open_fence else lines)


@cache
def _build_block_parser() -> MarkdownIt:
    # Imported here because the import takes 40 ms and only a text with a fence needs it.
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).disable(
        ["inline", "reference", "html_block"]
    )


def _make_markdown_line_safe(line: str) -> str:
    """Return a line outside a fence with all active markup escaped.

    If a code span contains active markup, it becomes a ``<code>`` element with escaped content. The
    result is safe even if a Markdown parser finds other code spans than this function, for example
    in a table.
    """
    # Some parsers treat a fence line that contains a vertical bar as the header row of a table.
    if _FENCE_PATTERN.fullmatch(line):
        return _escape_active_markup(line).replace("|", "&#124;")
    # Some parsers may treat this line as a fence, so its code spans are escaped too.
    if "```" in line:
        return _escape_active_markup(line)
    safe_spans, position = [], 0
    for span in _CODE_SPAN_PATTERN.finditer(line):
        is_safe = _escape_active_markup(span.group()) == span.group()
        safe_spans += [
            _escape_active_markup(line[position : span.start()]),
            span[0] if is_safe else f"<code>{escape_markdown(span[2])}</code>",
        ]
        position = span.end()
    return "".join([*safe_spans, _escape_active_markup(line[position:])])


def _escape_active_markup(text: str) -> str:
    escaped_text = text.replace("<", "&lt;").replace("![", "!\\[")
    return _UNSAFE_LINK_PATTERN.sub(lambda match: f"]\\{match.group()[1:]}", escaped_text)
