"""The handoff document: what a fresh session was given, as Markdown for people.

Invariant: words out of a transcript stand in the front matter as JSON strings, which YAML reads as they are, and in
the text without what Markdown would fetch or run.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

from resume_hooks.clock import minute
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fresh_child import RolloverPlan, digest_reference
from resume_hooks.reading.digest import as_text
from resume_hooks.sessions.opening_layout import next_step_of
from resume_hooks.sessions.record_references import SHORT
from resume_hooks.system.text import plain, plain_line

SLUG = 48  # characters of a title in a file name: at most 192 bytes

_ACTIVE = re.compile(r"(\\*)(<(?=[A-Za-z/!?])|\](?=[(\[:]))")
"""What begins a tag, or ends the words of a link; a backslash before it would undo ours."""

_BLOCK = re.compile(r"(?:#{1,6}|[-+*])(?:\s|$)|>|~~~|```|(?:[-*_=]\s*){3}")
_NOT_YAML = re.compile("[\ufffe\uffff]")  # what JSON leaves as it is, but readers of YAML refuse

_FENCE = re.compile("`+")


def file_name(decided: RolloverPlan) -> str:
    """``<YYYY-MM-DD>-<slug of the root's title>-<first 8 of the child's id>.md``, the day in UTC."""
    title = unicodedata.normalize("NFC", decided.draft.root_title.lower())
    words = "".join(letter if letter.isalnum() else " " for letter in title).split()
    slug = "-".join(words)[:SLUG].rstrip("-") or "session"
    return f"{decided.draft.setting.at[:10]}-{slug}-{decided.draft.session_id[:SHORT]}.md"


def document(decided: RolloverPlan, receipt: Receipt) -> str:
    """The whole document of a child; ``receipt`` is the one of its plan."""
    return "\n\n".join(["\n".join(_front_matter(decided, receipt)), *_text(decided, receipt)]) + "\n"


def current_session(decided: RolloverPlan, title: str, document_path: str) -> str:
    """What a ledger says of a child: title, id, minute in UTC, its document if there is one."""
    child = decided.draft
    parts = [title, child.session_id, f"{minute(child.setting.at)} UTC", document_path]
    return " · ".join(markdown_line(part) for part in parts if part)


def markdown_line(text: str) -> str:
    """Foreign text on one line of Markdown, without active HTML, links and images."""
    return _ACTIVE.sub(r"\1\1\\\2", plain_line(text))


def _front_matter(decided: RolloverPlan, receipt: Receipt) -> Iterator[str]:
    child = decided.draft
    yield "---"
    yield f"title: {_json(receipt.title)}"
    yield f"session_id: {_json(child.session_id)}"
    yield f"parent_session_id: {_json(child.parent.session_id)}"
    yield "lineage:"
    for row in child.ancestors:
        yield f"  - session_id: {_json(row.session_id)}"
        yield f"    title: {_json(row.title)}"
        yield f"    kind: {_json(row.kind)}"
    yield f"created: {_json(child.setting.at)}"
    yield f"branch: {_json(child.setting.branch)}"
    yield f"next_step: {_json(next_step_of(decided.opening) or '')}"
    yield f"command: {_json(receipt.shell)}"
    yield "---"


def _text(decided: RolloverPlan, receipt: Receipt) -> Iterator[str]:
    """The document's blocks after the front matter."""
    given, child = decided.contents, decided.draft
    yield f"# {markdown_line(receipt.title)}"
    if step := next_step_of(decided.opening):
        yield f"## Next step, as the user put it\n\n{_fenced(step)}"
    if given.summary:
        yield f"## Summary, by a model\n\n{_fenced(given.summary)}"
    if given.edited:
        yield f"## What the fresh session was told, as the user edited it\n\n{_fenced(given.edited)}"
    if given.digest:
        yield from _digest(as_text.full(given.digest))
    commands = [f"In Claude Code:\n\n{_fenced(receipt.in_client)}", f"In a shell:\n\n{_fenced(receipt.shell)}"]
    whole = digest_reference(child.session_id)
    more = f"What a reference names: `resume-hooks read <reference>`; the digest itself: `{whole}`."
    yield "\n\n".join(["## How to go on", *commands, *([more] if given.digest else [])])


def _digest(whole: str) -> Iterator[str]:
    """A full digest in sections of Markdown; its first lines say what it is of."""
    blocks: list[list[str]] = []
    for row in whole.split("\n"):
        bullet = row.startswith(as_text.BULLET)
        text = _tamed(row.removeprefix(as_text.BULLET))
        if bullet:
            blocks[-1].append(f"- {text}")
        else:
            blocks.append([f"## {text[:1].upper()}{text[1:-1]}\n" if row.endswith(":") else text])
    yield from ("\n".join(block) for block in blocks)


def _tamed(text: str) -> str:
    """A line that begins no heading, list, quotation, rule or fence either."""
    line = markdown_line(text)
    return f"\\{line}" if _BLOCK.match(line) else line


def _fenced(text: str) -> str:
    """Text as it is, in a block that it can't end."""
    longest = max(map(len, _FENCE.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{plain(text)}\n{fence}"


def _json(text: str) -> str:
    """Foreign text as a string of JSON on one line, which YAML reads as well."""
    written = json.dumps(plain(text), ensure_ascii=False)
    return _NOT_YAML.sub(lambda sign: f"\\u{ord(sign.group()):04x}", written)
