"""Tests of showing a record as text without JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.reading.render import render_line, render_record_text
from resume_hooks.sessions.record_references import RecordLines
from tests.builders import (
    SESSION,
    Record,
    assistant,
    attachment,
    boundary,
    call,
    custom_title,
    result,
    system,
    tool_result,
    user,
    write_session,
)

PNG_IMAGE: Record = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000},
}
PDF_DOCUMENT: Record = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "A" * 400},
}
TEXT_DOCUMENT: Record = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "as it is"},
}
LINKED_IMAGE: Record = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}

RENDERED_RECORDS: dict[str, tuple[Record, str]] = {
    "a prompt": (user("fix it\nnow", uuid="u"), "fix it\nnow"),
    "an answer in blocks": (
        assistant([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], uuid="a"),
        "one\n\ntwo",
    ),
    "thinking": (
        assistant([{"type": "thinking", "thinking": "hm", "signature": "s"}], uuid="a"),
        "[thinking]\nhm",
    ),
    "thinking that was not kept": (
        assistant([{"type": "thinking", "thinking": "", "signature": "s"}], uuid="a"),
        "[thinking, its text was not kept by the client]",
    ),
    "encrypted thinking": (
        assistant([{"type": "redacted_thinking", "data": "x"}], uuid="a"),
        "[thinking, encrypted]",
    ),
    "a call": (
        assistant(
            [call("c", "Bash", command="ls\npwd", timeout=5, flags={"a": [True, None], "b": {}})],
            uuid="a",
        ),
        "[call of Bash]\ncommand:\nls\npwd\ntimeout: 5\nflags.a.0: true\nflags.a.1: null\nflags.b: {}",
    ),
    "a call without inputs": (assistant([call("c", "List")], uuid="a"), "[call of List]"),
    "a result": (
        tool_result("c", '{"not": "touched"}', uuid="u", parent=None),
        '{"not": "touched"}',
    ),
    "a failed result": (user([result("c", "no", is_error=True)], uuid="u"), "[error]\nno"),
    "a result in parts": (
        tool_result("c", [{"type": "text", "text": "seen"}, PNG_IMAGE], uuid="u", parent=None),
        "seen\n[image, png, 3.0 KB]",
    ),
    "a result of nothing": (user([{"type": "tool_result", "tool_use_id": "c"}], uuid="u"), ""),
    "images and documents": (
        user([PNG_IMAGE, PDF_DOCUMENT, TEXT_DOCUMENT, LINKED_IMAGE], uuid="u"),
        "[image, png, 3.0 KB]\n\n[document, pdf, 300 B]\n\n[document, text]\nas it is\n\n[image, https://x/y.png]",
    ),
    "a block of an unknown kind": (
        assistant(
            [{"type": "server_tool_use", "id": "x", "name": "web", "input": {"q": "?"}}], uuid="a"
        ),
        "[server_tool_use]\nname: web\ninput.q: ?",
    ),
    "an attachment as it was sent": (attachment("told", uuid="t", parent=None), "told"),
    "an attachment of an old client": (
        {
            "type": "attachment",
            "uuid": "t",
            "attachment": {"type": "file", "content": {"text": "a\nb"}},
        },
        "type: file\ncontent.text:\na\nb",
    ),
    "a system note": (system("informational", uuid="s", content="blocked"), "blocked"),
    "a system note without text": (
        system("turn_duration", uuid="s", durationMs=7),
        "durationMs: 7",
    ),
    "a boundary": (boundary(uuid="b"), "Conversation compacted"),
    "metadata": (custom_title("Mine"), "customTitle: Mine"),
    "a summary": ({"type": "summary", "summary": "All of it", "leafUuid": "x"}, "All of it"),
    "odd contents": (
        {"type": "user", "uuid": "u", "message": {"content": [3, {"type": 4}, None]}},
        "[a block of no kind]",
    ),
    "nothing": ({}, ""),
}


@pytest.mark.parametrize("name", RENDERED_RECORDS)
def test_each_kind_of_record_is_shown_as_text(name: str) -> None:
    """Each kind of record is shown as text, and images and documents by their type and size."""
    record, shown = RENDERED_RECORDS[name]
    assert render_record_text(record) == shown


def test_an_image_in_an_input_is_not_printed() -> None:
    """An image in a tool's input is shown by its type and size."""
    shown = render_record_text(assistant([call("c", "Send", image=PNG_IMAGE)], uuid="a"))
    assert shown == "[call of Send]\nimage: [image, png, 3.0 KB]"


def test_deep_nesting_is_rendered_without_recursion() -> None:
    """A tool's input that is nested 5,000 deep is shown without a recursion error."""
    deep: Record = {"x": "end"}
    for _ in range(5_000):
        deep = {"x": deep}
    assert render_record_text(assistant([call("c", "Odd", **deep)], uuid="a")).endswith(".x: end")


def test_a_result_has_the_tool_of_its_call(tmp_path: Path) -> None:
    """A tool result has the name and the target of its call in the same file."""
    records = [
        assistant(
            [call("c1", "Read", file_path="/x.py"), call("c2", "Bash", command="ls")],
            uuid="a",
            parent=None,
        ),
        tool_result("c1", "text", uuid="u1", parent="a"),
        user([result("c1", "one"), result("c2", "two")], uuid="u2", parent="a"),
        tool_result("c3", "stray", uuid="u3", parent="a"),
    ]
    entries = RecordLines(write_session(tmp_path, SESSION, records), SESSION)
    asked, one, both, stray = (
        render_line(record, entry)
        for n, record in enumerate(records)
        if (entry := entries.find_line_with_number(n)) is not None
    )
    assert (one.kind, one.role, one.tool_name, one.target, one.text) == (
        "user",
        "user",
        "Read",
        "/x.py",
        "text",
    )
    assert (both.tool_name, both.target) == ("Read, Bash", "")
    assert both.text == "[result of Read /x.py]\none\n\n[result of Bash ls]\ntwo"
    assert (stray.tool_name, stray.target, stray.text) == ("", "", "stray")
    assert (asked.role, asked.tool_name) == ("assistant", "Read, Bash")
