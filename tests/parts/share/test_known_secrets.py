"""Tests that no output and no file name contains a secret that is in many parts of a session."""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from pathlib import Path
from urllib.parse import quote

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.parts.share.export import DOCUMENT_FORMATS as DOCUMENTS
from resume_hooks.parts.share.export import JSON, MAX_TEXT_CHARACTERS
from resume_hooks.parts.share.export.document import Document, DocumentOptions
from resume_hooks.parts.share.export.select_records import CONVERSATION
from resume_hooks.parts.share.export.shared_page import PAGE_OPTIONS, open_packed_bundle
from resume_hooks.redaction.texts import find_secrets, redact
from resume_hooks.sessions.locate import session_file
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    custom_title,
    session_bytes,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.redaction.examples import examples
from tests.redaction.planted import FORMS, Form

FORBIDDEN_RUN_LENGTH = 3
"""An output must not contain this many consecutive characters of a secret.

This does not apply if all of these characters are letters or digits.
"""

RECOGNIZED_CHARACTER_COUNT = 8
"""Number of a secret's last or first characters by which a shortened secret is recognized."""

FORBIDDEN_LETTER_RUN_LENGTH = 6
"""An output must not contain this many consecutive characters of a secret, whatever they are.

This number is larger than ``FORBIDDEN_RUN_LENGTH``, because an output may contain three letters of
a secret by chance.
"""

_CHANCE_PATTERN = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}"
)
"""Matches ids and times, which may contain a part of a secret by chance."""

TESTED_FORMS = [
    form
    for form in FORMS
    if redact(form.template.format(form.make_secret(random.Random(form.name))))[1]
    and "\n" not in form.make_secret(random.Random(1))
]


def records_with_secret(form: Form, secret: str) -> list[Record]:
    """Return a session with a secret in every field, for example titles, calls and file names.

    Some fields have the secret in an encoded form. A long secret is split between two messages.
    """
    told = form.template.format(secret)
    half = len(secret) // 2 if len(secret) >= 2 * RECOGNIZED_CHARACTER_COUNT else len(secret)
    first_half, second_half = secret[:half], secret[half:]
    file = f"/srv/{secret}.txt"
    patch = [
        {
            "oldStart": 1,
            "oldLines": 1,
            "newStart": 1,
            "newLines": 1,
            "lines": [f"-{secret}", f"+x {secret[:9]}…"],
        }
    ]
    return [
        user(f"deploy {secret} with:\n{told}\nplease", uuid="a", parent=None, ts=1, cwd="/srv"),
        custom_title(f"deploy {secret} now"),
        {"type": "tag", "tag": f"for {secret}", "sessionId": SESSION},
        tool_use(
            "t1",
            uuid="b",
            parent="a",
            ts=2,
            name="Write",
            tool_input={
                "file_path": file,
                "content": secret,
                "nested": json.dumps({"inner": json.dumps({"value": secret})}),
                "url": f"https://host/?q={quote(secret, safe='')}",
                "encoded": base64.b64encode(f"user:{secret}".encode()).decode(),
                secret: 1,
            },
        ),
        {
            **tool_result("t1", f"wrote {file}: '{secret}'", uuid="c", parent="b", ts=3),
            "toolUseResult": {
                "filePath": file,
                "structuredPatch": patch,
                "originalFile": f"a\n{secret}\n",
            },
        },
        attachment_record(f"/srv/{secret}.md", secret),
        assistant(f"I wrote `{secret}` into {file}.", uuid="d", parent="c", ts=4, tokens=9),
        user(f"the first half\n{first_half}\n", uuid="e", parent="d", ts=5),
        user(f"{second_half} is the other", uuid="f", parent="e", ts=6),
        {
            "type": "file-history-snapshot",
            "messageId": "m",
            "snapshot": {"trackedFileBackups": {file: {}}},
        },
    ]


def attachment_record(file: str, text: str) -> Record:
    """Return the record of a file that the user attached."""
    content = {"type": "text", "file": {"filePath": file, "content": text}}
    return {
        **user("", uuid="g", parent="c", ts=4, cwd="/srv"),
        "type": "attachment",
        "attachment": {"type": "file", "filename": file, "content": content},
    }


def remaining_parts(text: str, secret: str, other_output: str) -> list[str]:
    """Return the parts of ``secret`` that ``text`` contains.

    Parts that ``other_output`` contains are omitted. ``other_output`` is the same output of a
    session with another secret.
    """
    runs = {
        secret[at : at + FORBIDDEN_LETTER_RUN_LENGTH]
        for at in range(len(secret) - FORBIDDEN_LETTER_RUN_LENGTH + 1)
    }
    short = {
        secret[at : at + FORBIDDEN_RUN_LENGTH]
        for at in range(len(secret) - FORBIDDEN_RUN_LENGTH + 1)
        if not secret[at : at + FORBIDDEN_RUN_LENGTH].isalnum()
    }
    text, other_output = (_CHANCE_PATTERN.sub("", each) for each in (text, other_output))
    return sorted(run for run in runs | short if run in text and run not in other_output)


def outputs_with_secret(config_home: ConfigHome, form: Form, secret: str) -> dict[str, str]:
    """Return every output of a session with a secret, by its kind."""
    path = write_session(config_home.project("/srv"), SESSION, records_with_secret(form, secret))
    agents_folder = Path(path).with_suffix("") / "subagents"
    agents_folder.mkdir(parents=True, exist_ok=True)
    said = [user(f"read {secret}", uuid="s", parent=None, ts=1, cwd="/srv")]
    (agents_folder / "agent-a1.jsonl").write_bytes(session_bytes(said))
    return outputs_of_session(config_home, path)


def outputs_of_session(config_home: ConfigHome, path: str) -> dict[str, str]:
    """Return every output of the session at ``path``, by its kind."""
    session, where = session_file(path), config_home.where
    made = {}
    for kind in DOCUMENTS:
        document = Document(
            [session], DocumentOptions(kind, True, True, CONVERSATION, MAX_TEXT_CHARACTERS), where
        )
        made[kind] = b"".join(document.build_chunks()).decode()
        made[f"name of {kind}"] = document.name
    page = Document([session], PAGE_OPTIONS, where)
    with open_packed_bundle(page, where) as bundle:
        shared = b"".join(bundle.build_chunks(page)).decode()
        bundle.stream.seek(0)
        made["bundle in the page"] = zlib.decompress(bundle.stream.read(), 31).decode()
    made["shared page"] = re.sub(r"(?s)<script type=.application/x-resume.*?</script>", "", shared)
    child = write_child(agents.plan_fresh_child(session, where, kind="handoff"), where)
    made["child"] = Path(child.file).read_text()
    made["title"] = child.title
    Path(child.file).unlink()
    return made


@pytest.mark.parametrize("form", TESTED_FORMS, ids=lambda form: form.name)
def test_no_output_contains_a_part_of_a_secret(config_home: ConfigHome, form: Form) -> None:
    """Whatever the form of a secret, no output of a session contains a part of it.

    Outputs are pages, Markdown, bundles, children, titles and file names.
    """
    secret = form.make_secret(random.Random(form.name))
    other = outputs_with_secret(
        config_home, form, form.make_secret(random.Random(f"{form.name} another"))
    )
    for what, text in outputs_with_secret(config_home, form, secret).items():
        assert remaining_parts(text, secret, other[what]) == [], what
        encoded = (base64.b64encode(bytes(at) + secret[-12:].encode())[4:12] for at in range(3))
        assert not any(part.decode() in text for part in encoded), what


def secrets_of_rules() -> list[tuple[str, str]]:
    """Return a text and its secret for each rule whose secret is one long word."""
    found = []
    for example in examples():
        spans = find_secrets(example.text)
        value = max((example.text[span.start : span.end] for span in spans), key=len)
        is_word = value.isascii() and len(value.split()) == 1
        if (
            not example.allows_any_letter
            and is_word
            and len(value) >= 2 * RECOGNIZED_CHARACTER_COUNT
        ):
            found.append((example.text, value))
    return found


@pytest.mark.parametrize("quarter", range(4))
def test_no_output_contains_the_secret_of_a_rule(config_home: ConfigHome, quarter: int) -> None:
    """No output contains the secret of a rule, even if an answer consists only of the secret."""
    secrets = secrets_of_rules()[quarter::4]
    records = [user("please deploy", uuid="u", parent=None, ts=0, cwd="/srv")]
    for number, (text, value) in enumerate(secrets):
        encoded = base64.b64encode(value.encode()).decode()
        content = f"{value}\n\n{quote(value, safe='')}\n\n{json.dumps({'v': json.dumps(value)})}\n\n{encoded}"
        answer = assistant(content, uuid=f"b{number}", parent=f"a{number}", ts=number, tokens=9)
        parent = f"b{number - 1}" if number else "u"
        prompt = user(f"use\n{text}\n", uuid=f"a{number}", parent=parent, ts=number, cwd="/srv")
        records += [prompt, answer]
    path = write_session(config_home.project("/srv"), SESSION, records)
    for what, text in outputs_of_session(config_home, path).items():
        for _, value in secrets:
            encoded = base64.b64encode(value.encode()).decode()
            parts = (value[-RECOGNIZED_CHARACTER_COUNT:], value[-12:-4], encoded[-16:-4])
            assert not any(quarter in text for quarter in parts), what


@pytest.mark.parametrize("value", ["xho9ypjaxtb", "Vq7#kd!w"])
def test_a_secret_on_the_line_after_its_name_is_redacted_in_a_title(
    config_home: ConfigHome, value: str
) -> None:
    """A password on the line after "password:" is removed from the title, which is one line."""
    rows = [
        user(
            f"deploy with:\npassword: >-\n  {value}\nand go on",
            uuid="a",
            parent=None,
            ts=1,
            cwd="/srv",
        )
    ]
    path = write_session(config_home.project("/srv"), SESSION, rows)
    document = Document(
        [session_file(path)],
        DocumentOptions("html", True, True, CONVERSATION, MAX_TEXT_CHARACTERS),
        config_home.where,
    )
    assert value not in b"".join(document.build_chunks()).decode()
    assert value[:3].lower() not in document.name
    child = write_child(
        agents.plan_fresh_child(session_file(path), config_home.where, kind="handoff"),
        config_home.where,
    )
    assert value not in Path(child.file).read_text()


def test_a_file_named_like_a_secret_is_not_bundled(config_home: ConfigHome) -> None:
    """A bundle does not include a file whose name is a secret."""
    rows = [user("use\nDB_PASSWORD=xho9ypjaxtb\n", uuid="a", parent=None, ts=1, cwd="/srv")]
    path = write_session(config_home.project("/srv"), SESSION, rows)
    results = Path(path).with_suffix("") / "tool-results"
    results.mkdir(parents=True)
    (results / "xho9ypjaxtb.txt").write_text("fine\n")
    (results / "other.txt").write_text("see xho9ypjaxtb\n")
    document = Document(
        [session_file(path)], DocumentOptions(JSON, True, True, CONVERSATION, 0), config_home.where
    )
    bundle = b"".join(document.build_chunks()).decode()
    assert "xho9" not in bundle
    assert "other.txt" in bundle


def test_a_page_name_has_no_secret_in_full_width_letters(config_home: ConfigHome) -> None:
    """A page's name contains no secret, even if the title has it in full-width letters."""
    word = "xho9ypjaxtbw"
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in word)
    records = [
        user(f"password: {word}", uuid="a", parent=None, ts=1),
        assistant("ok", uuid="b", parent="a", ts=2),
    ]
    path = write_session(config_home.project(), SESSION, [*records, custom_title(f"deploy {wide}")])
    document = Document(
        [session_file(path)],
        DocumentOptions("html", True, True, CONVERSATION, MAX_TEXT_CHARACTERS),
        config_home.where,
    )
    assert word[:4] not in document.name
