"""A document as Markdown that GitHub shows well: a heading a turn, calls folded, fences longer than any inside.

What the model wrote stays Markdown; what could break out of its place, or load anything, is escaped there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from resume_hooks.clock import minute
from resume_hooks.export.layout import (
    MARKS,
    SPEAKERS,
    called_name,
    left_out,
    session_facts,
    state_of,
    tasks_of,
    turn_facts,
    turn_name,
)
from resume_hooks.export.parts import (
    ASSISTANT,
    SUMMARY,
    Agent,
    Called,
    Ending,
    Note,
    Part,
    Picture,
    Said,
    Session,
    Thought,
    Turn,
)
from resume_hooks.glance import one_line
from resume_hooks.plain import plain, plain_line
from resume_hooks.rendering import fields_text

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~])")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"\]\((?!(?:https?://|mailto:)[^\s)]*[)\s]|[\w#./~-]+[)\s])|\]:")
_RUNS = re.compile(r"`+")


def as_markdown(parts: Iterable[Part]) -> Iterator[str]:
    """The document of these parts, piece by piece."""
    for part in parts:
        yield from _pieces(part)


def _pieces(part: Part) -> Iterator[str]:
    if isinstance(part, Called):
        yield from _called(part)
    elif isinstance(part, Agent):
        yield from _agent(part)
    else:
        yield f"{_shown(part)}\n\n"


def _shown(part: Session | Turn | Said | Thought | Note | Picture | Ending) -> str:
    if isinstance(part, Session):
        return _session(part)
    if isinstance(part, Turn):
        facts = escaped(" · ".join(turn_facts(part)))
        return f'## <a id="t{part.number}"></a>{turn_name(part)}: {escaped(one_line(part.words, 80))}\n\n{facts}'
    if isinstance(part, Said):
        return _said(part)
    if isinstance(part, Thought):
        return _folded("Thinking", fenced(part.text))
    if isinstance(part, Note):
        return _folded(part.what, fenced(part.text)) if part.text else f"*{escaped(part.what)}*"
    if isinstance(part, Picture):
        return f"*{escaped(part.about)}*"
    return "---\n\n" + "\n".join(f"- {escaped(said)}" for said in left_out(part))


def _session(session: Session) -> str:
    facts = "\n".join(f"| {name} | {escaped(value)} |" for name, value in session_facts(session))
    rows = (f"{turn.number}. [{escaped(one_line(turn.words, 80))}](#t{turn.number})" for turn in session.turns)
    table = f"<details>\n<summary>Turns</summary>\n\n{chr(10).join(rows)}\n\n</details>" if session.turns else ""
    return f"# {escaped(session.title)}\n\n| | |\n|---|---|\n{facts}\n\n{table}"


def _said(said: Said) -> str:
    when = f" · {minute(said.time)}" if said.time else ""
    head = f"**{SPEAKERS[said.who]}**{when}"
    if said.who == ASSISTANT:
        return f"{head}\n\n{tamed(said.text)}"
    if said.who == SUMMARY:
        return _folded(SPEAKERS[said.who], tamed(said.text))
    quoted = "\n".join(f"> {line}".rstrip() for line in tamed(said.text).split("\n"))
    return f"{head}\n\n{quoted}"


def _called(called: Called) -> Iterator[str]:
    state = f" ({state})" if (state := state_of(called)) else ""
    about = f" {_html(called.about)}" if called.about else ""
    yield f"<details>\n<summary><b>{_html(called_name(called))}</b>{about}{state}</summary>\n\n"
    tasks = tasks_of(called.given)
    if tasks:
        yield "\n".join(f"- [{MARKS.get(status, ' ')}] {escaped(words)}" for status, words in tasks) + "\n\n"
    elif called.given:
        yield f"{_given(called)}\n\n"
    if called.agent is not None:
        yield from _agent(called.agent)
    if called.answer is not None:
        texts = (part if isinstance(part, str) else f"[{part.about}]" for part in called.answer.parts)
        yield f"{fenced(chr(10).join(texts))}\n\n"
    yield "</details>\n\n"


def _given(called: Called) -> str:
    """The input of a call; of an edit what it changes."""
    old, new, command = (called.given.get(key) for key in ("old_string", "new_string", "command"))
    if isinstance(old, str) and isinstance(new, str):
        gone = [f"-{line}" for line in old.split("\n")] if old else []
        come = [f"+{line}" for line in new.split("\n")] if new else []
        return fenced("\n".join([*gone, *come]), "diff")
    if isinstance(command, str):
        return fenced(command, "sh")
    return fenced(fields_text(called.given))


def _agent(agent: Agent) -> Iterator[str]:
    yield f"<details>\n<summary>Sub-agent {_html(agent.kind)} {_html(agent.name)}</summary>\n\n"
    for part in agent.parts:
        yield from _pieces(part)
    yield "</details>\n\n"


def _folded(title: str, body: str) -> str:
    return f"<details>\n<summary>{_html(title)}</summary>\n\n{body}\n\n</details>"


def fenced(text: str, language: str = "") -> str:
    """A text in a fence that nothing in it can close."""
    shown = plain(text)
    longest = max((len(run) for run in _RUNS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def escaped(text: str) -> str:
    """A text on one line that says what it says, and nothing to Markdown."""
    return _SPECIAL.sub(r"\\\1", _html(text))


def _html(text: str) -> str:
    return plain_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def tamed(text: str) -> str:
    """Markdown that stays in its place: no HTML, no images, links of the web alone, every fence closed."""
    lines, fence = [], ""
    for line in plain(text).split("\n"):
        mark = _FENCE.fullmatch(line)
        if fence:
            closing = mark is not None and not mark[2].strip() and mark[1][0] == fence[0] and len(mark[1]) >= len(fence)
            lines.append(line)
            fence = "" if closing else fence
        elif mark is not None and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
            lines.append(line)
        else:
            lines.append(_tamed_line(line))
    return "\n".join([*lines, fence] if fence else lines)


def _tamed_line(line: str) -> str:
    """A line outside of a fence; what stands in its code spans stays."""
    parts, place = [], 0
    for span in _SPAN.finditer(line):
        parts += [_harmless(line[place : span.start()]), span.group()]
        place = span.end()
    return "".join([*parts, _harmless(line[place:])])


def _harmless(text: str) -> str:
    shown = text.replace("<", "&lt;").replace("![", "!\\[")
    return _LINK.sub(lambda found: f"]\\{found.group()[1:]}", shown)
