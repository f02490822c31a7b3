"""Tests of a handoff's document: its front matter, its sections, and hostile text in it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from markdown_it import MarkdownIt

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import make_planned_receipt
from resume_hooks.derive.fresh_child import ChildContents, FreshChildPlan
from resume_hooks.parts.documents.document import (
    format_document,
    format_document_name,
    format_markdown_line,
)
from resume_hooks.reading.digest.entries import Digest, DigestEntry, MessageKind, TalkMessage
from resume_hooks.sessions import locate
from tests.builders import CWD, SESSION, ConfigHome, conversation, custom_title, write_session

SAMPLE_DIGEST = Digest(
    {
        "now": (DigestEntry("git: on main, 2 changed"),),
        "todos": (
            DigestEntry("write docs", f"{SESSION}:4", "pending"),
            DigestEntry("and tests", f"{SESSION}:7"),
        ),
        "commands": (DigestEntry("cat <<'EOF' | sh", f"{SESSION}:3"),),
    },
    (
        TalkMessage(MessageKind.REQUEST, f"{SESSION}:0", "begin"),
        TalkMessage(MessageKind.REQUEST, f"{SESSION}:1", "fix the parser:\n- all of it"),
        TalkMessage(MessageKind.CLOSING, f"{SESSION}:2", "# Done\n```\ncode\n```"),
    ),
    {"todos": 4},
)


def plan_titled_handoff(
    home: ConfigHome,
    title: str = "Fix the parser",
    next_step: str = "",
    contents: ChildContents | None = None,
    **extra: Any,
) -> FreshChildPlan:
    """Write a session with a title and return the plan of its handoff."""
    records = [{**record, **extra} for record in conversation(2)]
    lines = [json.dumps(record).encode() for record in (*records, custom_title(title))]
    path = write_session(home.project(), SESSION, lines)
    parent = locate.session_file(path)
    return agents.plan_fresh_child(
        parent,
        home.where,
        kind="handoff",
        next_step=next_step,
        contents=contents or ChildContents(SAMPLE_DIGEST),
    )


def format_document_text(decided: FreshChildPlan) -> str:
    """Return the text of a plan's document."""
    return format_document(decided, make_planned_receipt(decided))


def parse_front_matter(text: str) -> dict[str, Any]:
    """Return the front matter of a document, in which each value must be a JSON string."""
    opening, head, _ = text.split("---\n", 2)
    assert opening == ""
    found: dict[str, Any] = {"lineage": []}
    for row in head.splitlines():
        name, _, value = row.strip().removeprefix("- ").partition(": ")
        if row == "lineage:":
            continue
        if row.startswith("  - "):
            found["lineage"].append({})
        target = found["lineage"][-1] if row.startswith("  ") else found
        target[name] = json.loads(value)
    return found


def test_the_front_matter_describes_the_child_and_its_lineage(config_home: ConfigHome) -> None:
    """The front matter has title, ids, ancestors, time, branch, next step and command."""
    decided = plan_titled_handoff(config_home, next_step="do this\n---\nthen that")
    child = decided.draft.session_id
    assert parse_front_matter(format_document_text(decided)) == {
        "title": "do this --- then that · handoff",
        "session_id": child,
        "parent_session_id": SESSION,
        "lineage": [{"session_id": SESSION, "title": "Fix the parser", "kind": "original"}],
        "created": decided.draft.attributes.created_at,
        "branch": "main",
        "next_step": "do this\n---\nthen that",
        "command": f"cd {CWD} && claude --resume {child}",
    }


def test_the_document_has_all_sections(config_home: ConfigHome) -> None:
    """The document has all sections of the digest and ends with the command that continues the child.

    The document also says how many entries of a section are omitted.
    """
    text = format_document_text(
        plan_titled_handoff(
            config_home,
            next_step="go",
            contents=ChildContents(SAMPLE_DIGEST, "goal: all", "what I changed"),
        )
    )
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == [
        "Next step, as the user put it",
        "Summary (written by a model)",
        "The opening of the fresh session, edited by the user",
        "Now",
        "Open",
        "Talk, oldest first",
        "Commands to run again",
        "How to continue",
    ]
    for part in (
        "- to do: write docs (pending, :4)\n- to do: and tests (:7)\n- to do: (4 more)\n",
        "- git: on main, 2 changed\n",
        "\n\n**last request, USER :1**\n\n> fix the parser:\\\n> \\- all of it\n",
        "\n\n**last answer, ASSISTANT :2**\n\n> \\# Done\\\n> \\```\\\n> code\\\n> \\```\n",
        "## Talk, oldest first\n\n\n**USER :0**\n\n> begin\n",
        "- cat <<'EOF' | sh (:3)\n",
        "```\ngoal: all\n```",
        "```\nwhat I changed\n```",
    ):
        assert part in text


HOSTILE_TITLES = {
    "newline": "a\n---\nsession_id: evil\n# b",
    "quotes": "\"': {[#&*!|>%@`\\",
    "controls": "a\x1b[31mred\x00\x07\x85\u2028b",
    "surrogate": "a\ud800b",
    "no character": "a\ufffe\uffffb",
    "tag": "<script>alert(1)</script><img src=http://x/>",
    "image": "![x](http://x/p.png) [y]: http://x",
    "escaped already": "\\<img src=x> [a\\](http://x)",
}


@pytest.mark.parametrize("title", HOSTILE_TITLES.values(), ids=HOSTILE_TITLES)
def test_hostile_text_does_not_change_the_documents_structure(
    config_home: ConfigHome, title: str
) -> None:
    """Hostile text adds no key and no heading to the document.

    A Markdown parser finds no HTML, image or link in the document.
    """
    words = title.replace("\ud800", "?")  # A digest contains no lone surrogates.
    entries = {
        "todos": (DigestEntry(words, f"{SESSION}:1"), DigestEntry(f"# {words}", note=words)),
        "commands": (DigestEntry(words),),
    }
    rows = "\n".join(
        row
        for row in f"{words}\n# {words}:\nending in:\n````\n- x\n{words}".split("\n")
        if row.strip()
    )
    said = (
        TalkMessage(MessageKind.REQUEST, f"{SESSION}:0", rows),
        TalkMessage(MessageKind.CLOSING, f"{SESSION}:1", rows),
    )
    step = f"{title}\n```\n# no heading"
    decided = plan_titled_handoff(
        config_home,
        title,
        step,
        ChildContents(Digest(entries, said, git_line=words)),
        gitBranch=title,
    )
    text = format_document_text(decided)
    found = parse_front_matter(text)
    assert list(found) == [
        "lineage", "title", "session_id", "parent_session_id", "created", "branch", "next_step", "command",
    ]  # fmt: skip
    assert found["session_id"] == decided.draft.session_id
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\ud800-\udfff\ufffe\uffff]", text.partition("\n---\n")[0]
    )
    tokens = MarkdownIt("commonmark").parse(text.split("\n---\n", 1)[1])
    assert [token.tag for token in tokens if token.type == "heading_open"] == [
        "h1",
        "h2",
        "h2",
        "h2",
        "h2",
    ]
    kinds = {inner.type for token in tokens for inner in (token, *(token.children or []))}
    assert kinds.isdisjoint({"html_block", "html_inline", "image", "link_open"})


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Fix the parser", "fix-the-parser"),
        ("../../etc/passwd", "etc-passwd"),
        ("-rf --x", "rf-x"),
        ("a\nb/c\\d:e", "a-b-c-d-e"),
        ("🎉", "session"),
        ("세션 이어가기", "세션-이어가기"),
        ("cafe\u0301", "café"),
        (
            "x" * 300,
            "x" * 8,
        ),  # One long word may be an access token, so only its beginning is kept.
        ("word " * 30, "word-word-word-word-word-word-word-word-word-wor"),
        ("..", "session"),
    ],
)
def test_a_document_name_has_day_title_and_id(
    config_home: ConfigHome, title: str, slug: str
) -> None:
    """A document's name contains the day, the words of the title, and the beginning of the child's id.

    The name has at most 255 bytes.
    """
    decided = plan_titled_handoff(config_home, title)
    name = format_document_name(decided)
    day = decided.draft.attributes.created_at[:10]
    assert name == f"{day}-{slug}-{decided.draft.session_id[:8]}.md"
    assert len(name.encode()) <= 255


@pytest.mark.parametrize(
    "text", ["a < b", "cat <<'EOF'", "[x] done", "a[1]", "--skip", "`code`", "**bold**", "C:\\x"]
)
def test_harmless_text_is_not_escaped(text: str) -> None:
    """Only characters that Markdown would interpret are escaped."""
    assert format_markdown_line(text) == text


def test_the_document_imports_few_modules(config_home: ConfigHome) -> None:
    """The module of the document imports neither click nor pydantic, because triggers use the module."""
    script = "import sys, resume_hooks.parts.documents.document; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"click", "pydantic", "rich", "pathlib", "tempfile", "sqlite3"}.isdisjoint(loaded)
