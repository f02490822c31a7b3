"""Render a document as Markdown for GitHub: one heading per turn, folded calls, and fences that no text can close.

The model's own Markdown is kept, but everything that could break the layout or load a resource is
escaped.
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
    SPEAKERS,
    SUMMARY,
    TASK_MARKS,
    AgentPart,
    CallPart,
    Part,
)
from resume_hooks.reading.render import fields_text
from resume_hooks.system.text import collapse_line, plain_line, plain_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_SPECIAL_CHARACTERS = re.compile(r"([\\`*_{}\[\]#|~])")
_FENCE = re.compile(r" {0,3}(?:`{3,}[^`]*|~{3,}.*)")
_CLOSING_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")
_CODE_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_UNSAFE_LINK = re.compile(r"\]\((?!(?:https?://|mailto:)[^\s)]*[)\s]|[\w#./~-]+[)\s])|\]:")
_BACKTICKS = re.compile(r"`+")


def document_as_markdown(document: Iterable[Part]) -> Iterator[str]:
    """Yield the document as Markdown, piece by piece."""
    for part in document:
        if isinstance(part, CallPart):
            yield from _call_as_markdown(part)
        elif isinstance(part, AgentPart):
            yield from _agent_as_markdown(part)
        else:
            yield f"{_part_as_markdown(part)}\n\n"


def _part_as_markdown(part: Part) -> str:
    match part:
        case parts.SessionPart():
            facts = "\n".join(
                f"| {name} | {escape_markdown(value)} |" for name, value in part.facts
            )
            rows = (
                f"{turn.number}. [{escape_markdown(collapse_line(turn.words, 80))}](#t{turn.number})"
                for turn in part.turns
            )
            table = (
                f"<details>\n<summary>Turns</summary>\n\n{chr(10).join(rows)}\n\n</details>"
                if part.turns
                else ""
            )
            return f"# {escape_markdown(part.title)}\n\n| | |\n|---|---|\n{facts}\n\n{table}"
        case parts.TurnPart():
            facts = escape_markdown(" · ".join(part.facts))
            words = escape_markdown(collapse_line(part.words, 80))
            return f'## <a id="t{part.number}"></a>Turn {part.number}: {words}\n\n{facts}'
        case parts.TextPart():
            return _text_as_markdown(part)
        case parts.ThinkingPart():
            return _fold_markdown("Thinking", fence_text(part.text))
        case parts.NotePart():
            return (
                _fold_markdown(part.what, fence_text(part.text))
                if part.text
                else f"*{escape_markdown(part.what)}*"
            )
        case parts.MediaPart():
            return f"*{escape_markdown(part.about)}*"
        case parts.EndPart():
            return "---\n\n" + "\n".join(
                f"- {escape_markdown(sentence)}" for sentence in part.sentences
            )
    return ""


def _text_as_markdown(part: parts.TextPart) -> str:
    head = f"**{SPEAKERS[part.who]}**" + (f" · {format_minute(part.time)}" if part.time else "")
    if part.who == ASSISTANT:
        return f"{head}\n\n{restrict_markdown(part.text)}"
    if part.who == SUMMARY:
        return _fold_markdown(SPEAKERS[part.who], restrict_markdown(part.text))
    # In a quote, a tab is narrower and could start a fence.
    quoted = restrict_markdown(plain_text(part.text).expandtabs(4)).split("\n")
    return f"{head}\n\n" + "\n".join(f"> {line}" if line else ">" for line in quoted)


def _call_as_markdown(call: CallPart) -> Iterator[str]:
    state = f" ({call.state})" if call.state else ""
    description = f" {_escape_html(call.about)}" if call.about else ""
    yield f"<details>\n<summary><b>{_escape_html(call.name)}</b>{description}{state}</summary>\n\n"
    if call.tasks:
        yield (
            "\n".join(
                f"- [{TASK_MARKS.get(status, ' ')}] {escape_markdown(words)}"
                for status, words in call.tasks
            )
            + "\n\n"
        )
    elif call.given:
        yield f"{_input_as_markdown(call)}\n\n"
    if call.agent is not None:
        yield from _agent_as_markdown(call.agent)
    if call.answer is not None:
        yield f"{fence_text(call.answer.text)}\n\n"
    yield "</details>\n\n"


def _input_as_markdown(call: CallPart) -> str:
    """Return a call's input, or the changed lines if the call is an edit."""
    old, new, command = (call.given.get(key) for key in ("old_string", "new_string", "command"))
    if isinstance(old, str) and isinstance(new, str):
        if old:
            removed = [f"-{line}" for line in old.split("\n")]
        else:
            removed = []
        added = [f"+{line}" for line in new.split("\n")] if new else []
        return fence_text("\n".join([*removed, *added]), "diff")
    if isinstance(command, str):
        return fence_text(command, "sh")
    return fence_text(fields_text(call.given))


def _agent_as_markdown(agent: AgentPart) -> Iterator[str]:
    yield f"<details>\n<summary>Sub-agent {_escape_html(agent.kind)} {_escape_html(agent.name)}</summary>\n\n"
    yield from document_as_markdown(agent.parts)
    yield "</details>\n\n"


def _fold_markdown(title: str, body: str) -> str:
    return f"<details>\n<summary>{_escape_html(title)}</summary>\n\n{body}\n\n</details>"


def fence_text(text: str, language: str = "") -> str:
    """Return a text in a fence that is longer than any run of backticks in the text."""
    content = plain_text(text)
    longest = max((len(run) for run in _BACKTICKS.findall(content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def escape_markdown(text: str) -> str:
    """Return a text as one line with all Markdown and HTML characters escaped."""
    return _SPECIAL_CHARACTERS.sub(r"\\\1", _escape_html(text))


def _escape_html(text: str) -> str:
    return plain_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def restrict_markdown(text: str) -> str:
    """Return Markdown that cannot affect the text around it: no HTML or images, only web links, every fence closed.

    The text in a fence is only kept unchanged if the fence begins at the first column, outside
    lists and quotes, because a list or quote may end before its fence. The text is escaped before
    it is parsed for fences, so that HTML cannot move them.
    """
    original_lines = plain_text(text).split("\n")
    lines = [_restrict_line(line) for line in original_lines]
    if not any(_FENCE.fullmatch(line) for line in lines):
        return "\n".join(lines)
    last = ""
    for token in _block_parser().parse("\n".join(lines)):
        if token.type != "fence" or token.level or token.map is None:
            continue
        start, end = token.map
        closing = _CLOSING_FENCE.fullmatch(lines[end - 1])
        if end - start < 2 or closing is None or not closing[1].startswith(token.markup):
            end, last = len(lines), token.markup
        if original_lines[start].startswith(token.markup):
            lines[start + 1 : end] = original_lines[start + 1 : end]
    return "\n".join([*lines, last] if last else lines)


@cache
def _block_parser() -> MarkdownIt:
    # markdown-it takes 40 ms to import, and is only needed for a text with a fence.
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).disable(
        ["inline", "reference", "html_block"]
    )


def _restrict_line(line: str) -> str:
    """Return a line outside a fence with live markup escaped.

    If the content of a code span needs escapes, the span becomes a ``<code>`` element.

    The result is safe wherever a parser sees the span begin and end, such as in a table or across
    lines.
    """
    # some parsers read a fence line with a vertical bar as a table header
    if _FENCE.fullmatch(line):
        return _escape_live(line).replace("|", "&#124;")
    if "```" in line:  # some parsers may read this as a fence, so its code spans are also escaped
        return _escape_live(line)
    pieces, position = [], 0
    for span in _CODE_SPAN.finditer(line):
        safe = _escape_live(span.group()) == span.group()
        pieces += [
            _escape_live(line[position : span.start()]),
            span[0] if safe else f"<code>{escape_markdown(span[2])}</code>",
        ]
        position = span.end()
    return "".join([*pieces, _escape_live(line[position:])])


def _escape_live(text: str) -> str:
    escaped = text.replace("<", "&lt;").replace("![", "!\\[")
    return _UNSAFE_LINK.sub(lambda match: f"]\\{match.group()[1:]}", escaped)
