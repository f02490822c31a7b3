"""Tests that a fresh child has exactly its documented form and that its parent is not changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import get_session_info, get_session_messages, list_sessions
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import (
    MAX_NEXT_STEP_CHARACTERS,
    OPENING_RECORD_LINE_NUMBER,
    TITLE_LINE_NUMBER,
    FreshChildPlan,
    FreshLines,
)
from resume_hooks.errors import (
    CheckFailed,
    NothingToHandOff,
    SessionNotFound,
    UsageError,
    WriteFailed,
)
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage_block import LINEAGE_END_MARKER, LINEAGE_START_MARKER
from resume_hooks.sessions.link_log import Link, read_links
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING, title_line
from resume_hooks.transcripts.invariants import Check
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    user,
    write_session,
)
from tests.corpus import RealSession
from tests.needs import REPO, require_for_test

TAG_LINE = b'{"type":"tag","tag":"release","sessionId":"%s"}' % SESSION.encode()
PULL_REQUEST_LINE = (
    b'{"type":"pr-link","sessionId":"%s","prNumber":72,"prUrl":"https://x.example/72"}'
    % SESSION.encode()
)
MODE_LINE = b'{"type":"mode","mode":"normal","sessionId":"%s"}' % SESSION.encode()
WORKTREE_LINE = (
    b'{"type":"worktree-state","worktreeSession":{"path":"/w","sessionId":"%s"},"sessionId":"%s"}'
    % (
        SESSION.encode(),
        SESSION.encode(),
    )
)
COMMON_FIELD_NAMES = [
    "parentUuid",
    "isSidechain",
    "userType",
    "entrypoint",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "type",
]


def write_parent(
    home: ConfigHome, *more_records: Any, title: str = "Fix the parser", session_id: str = SESSION
) -> locate.SessionFile:
    """Write a session of two turns, followed by a title and the records in ``more_records``."""
    records = [
        *conversation(2, session_id=session_id),
        custom_title(title, session_id),
        *more_records,
    ]
    return locate.session_file(write_session(home.project(), session_id, records))


def write_handoff(
    home: ConfigHome, parent: locate.SessionFile, **options: Any
) -> tuple[Receipt, list[dict[str, Any]]]:
    """Plan and write a handoff. Return the receipt and the child's records."""
    options.setdefault("kind", "handoff")
    receipt = write_child(agents.plan_fresh_child(parent, home.where, **options), home.where)
    return receipt, read_file_records(receipt.file)


def read_file_records(path: str) -> list[dict[str, Any]]:
    """Return the records of a file."""
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def read_folder_contents(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return every entry below a folder with its mode, size, time and content."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns, content)
    return found


def test_a_title_from_a_next_step_is_printable(config_home: ConfigHome) -> None:
    """A title made from a next step with control characters is one printable line."""
    receipt, _ = write_handoff(
        config_home, write_parent(config_home), next_step="fix \x1b[31mred\x07\nand blue"
    )
    assert receipt.title.isprintable()
    assert receipt.title.endswith("and blue · handoff")


def test_the_child_has_the_documented_form(config_home: ConfigHome) -> None:
    """A child has a metadata line, a title, the opening as a summary record, and an answer with the card."""
    parent = write_parent(config_home)
    receipt, records = write_handoff(config_home, parent, next_step="write the changelog")
    assert len(records) == 4
    metadata, title, opening, answer = records
    child = receipt.session_id

    assert metadata == {
        "continue_metadata": {
            "parent_session_file": parent.path,
            "parent_file": parent.path,
            "parent_session_id": SESSION,
            "continued_at": opening["timestamp"],
            "continuation_type": "handoff",
            "summary_included": False,
            "context_tokens": receipt.tokens_after,
            "characters_per_token": 4.0,
        }
    }
    assert list(opening) == [
        *COMMON_FIELD_NAMES,
        "uuid",
        "timestamp",
        "message",
        "isCompactSummary",
        "isVisibleInTranscriptOnly",
    ]
    assert list(answer) == [*COMMON_FIELD_NAMES, "uuid", "timestamp", "message"]
    for record in (opening, answer):
        assert (record["entrypoint"], record["userType"], record["isSidechain"]) == (
            "cli",
            "external",
            False,
        )
        assert (record["cwd"], record["version"], record["gitBranch"]) == (CWD, "2.1.329", "main")
        assert record["sessionId"] == child
        assert "permissionMode" not in record
        assert str(uuid.UUID(record["uuid"])) == record["uuid"]
    assert (opening["type"], opening["parentUuid"]) == ("user", None)
    assert opening["isCompactSummary"] is opening["isVisibleInTranscriptOnly"] is True
    assert opening["message"]["role"] == "user"
    text = opening["message"]["content"]
    assert text.startswith(f"{LINEAGE_START_MARKER}\n")
    assert text.endswith(f"{LINEAGE_END_MARKER}\n\n{NEXT_STEP_HEADING}\nwrite the changelog")

    assert (answer["type"], answer["parentUuid"]) == ("assistant", opening["uuid"])
    message = answer["message"]
    assert (message["model"], message["role"], message["type"]) == (
        "<synthetic>",
        "assistant",
        "message",
    )
    assert [block["type"] for block in message["content"]] == ["text"]
    assert message["content"][0]["text"].strip() not in {"", "No response requested."}
    assert set(message["usage"].values()) == {0}
    assert answer["timestamp"] > opening["timestamp"]

    assert title == {
        "type": "custom-title",
        "customTitle": "write the changelog · handoff",
        "sessionId": child,
    }
    raw = Path(receipt.file).read_bytes()
    assert raw.endswith(b"\n")
    assert raw.split(b"\n")[OPENING_RECORD_LINE_NUMBER].startswith(b'{"parentUuid":null,')
    assert raw.split(b"\n")[TITLE_LINE_NUMBER].startswith(b'{"type":"custom-title"')
    assert b": " not in raw.split(b"\n")[0]


def test_a_handoff_has_a_receipt_and_a_link(config_home: ConfigHome) -> None:
    """The receipt of a handoff has valid checks, and a link to the parent is stored."""
    parent = write_parent(config_home)
    receipt, records = write_handoff(config_home, parent)
    assert receipt.written
    assert receipt.warnings == ()
    assert receipt.checks
    assert all(check.ok for check in receipt.checks)
    promised = (
        "the first line names the parent",
        "the lineage and the next step are complete",
        "it has the planned title",
    )
    assert {Check(name, ok=True) for name in promised} <= set(receipt.checks)
    assert receipt.client_command == f"/resume {receipt.session_id}"
    assert receipt.shell_command == f"cd {CWD} && claude --resume {receipt.session_id}"
    assert receipt.tokens_before == 1_300
    assert 0 < receipt.tokens_after < receipt.tokens_before + 1_000
    at = records[0]["continue_metadata"]["continued_at"]
    (link,) = read_links(config_home.where)
    assert link == Link(receipt.session_id, SESSION, "handoff", at, client_pid=link.client_pid)


def test_metadata_is_copied_byte_for_byte(config_home: ConfigHome) -> None:
    """The parent's last tag, pull request, mode and worktree are copied with the child's session id."""
    older = TAG_LINE.replace(b"release", b"draft")
    other = [
        b'{"type":"ai-title","aiTitle":"x","sessionId":"%s"}' % SESSION.encode(),
        b'{"type":"permission-mode","permissionMode":"plan","sessionId":"%s"}' % SESSION.encode(),
        b'{"type":"summary","summary":"x"}',
    ]
    parent = write_parent(
        config_home, older, PULL_REQUEST_LINE, TAG_LINE, MODE_LINE, *other, WORKTREE_LINE
    )
    receipt, _ = write_handoff(config_home, parent)
    lines = Path(receipt.file).read_bytes().splitlines()[4:]
    child = receipt.session_id.encode()
    inner = WORKTREE_LINE.replace(SESSION.encode(), child).replace(child, SESSION.encode(), 1)
    expected = [
        one.replace(SESSION.encode(), child) for one in (TAG_LINE, PULL_REQUEST_LINE, MODE_LINE)
    ]
    assert lines == [*expected, inner]


def test_titles_are_numbered_within_the_project(config_home: ConfigHome) -> None:
    """A child's title has the first session's name, the kind, and a number that is unique in the project.

    If the first session was deleted, the name comes from its oldest child.
    """
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    parent = write_parent(config_home)
    first, _ = write_handoff(config_home, parent)
    with open(first.file, "ab") as stream:
        stream.write(
            json.dumps(user("go on", uuid="z", session_id=first.session_id)).encode() + b"\n"
        )
    second, _ = write_handoff(config_home, locate.session_file(first.file))
    third, _ = write_handoff(config_home, locate.session_file(first.file), kind="rollover")
    os.unlink(parent.path)
    fourth, records = write_handoff(config_home, locate.session_file(first.file))
    titles = [r.title.removeprefix("Fix the parser · ") for r in (first, second, third, fourth)]
    assert titles == ["handoff", "handoff 2", "rollover", "handoff 3"]
    assert "1. (file gone) · " in records[OPENING_RECORD_LINE_NUMBER]["message"]["content"]


def test_a_child_has_the_branch_version_and_folder_of_its_parent(config_home: ConfigHome) -> None:
    """A child has its parent's last branch and version, and the project's folder."""
    moved = user(
        "later", uuid="x", parent="r3", ts=9, cwd="/tmp", gitBranch="feature/x", version="2.1.112"
    )
    _, records = write_handoff(config_home, write_parent(config_home, moved))
    opening = records[OPENING_RECORD_LINE_NUMBER]
    assert (opening["cwd"], opening["gitBranch"], opening["version"]) == (
        CWD,
        "feature/x",
        "2.1.112",
    )


@pytest.mark.parametrize("cwd", ["/x\0y", "/x\ud800y", "", 5, None, "\x1b[2J"])
def test_an_invalid_folder_does_not_prevent_a_handoff(config_home: ConfigHome, cwd: Any) -> None:
    """A handoff is written even if the parent's records contain an invalid folder."""
    path = config_home.project() / f"{SESSION}.jsonl"
    records = [{**record, "cwd": cwd} for record in conversation(1)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    receipt, _ = write_handoff(config_home, locate.session_file(str(path)))
    assert receipt.written


def write_untouched_child(home: ConfigHome) -> str:
    """Write a handoff that gets no prompts, and return its path."""
    return write_handoff(home, write_parent(home))[0].file


def write_records(home: ConfigHome, *records: Any) -> str:
    """Write a session with only these records."""
    return write_session(home.project(), session_id(3), records)


@pytest.mark.parametrize(
    "write_session_without_prompts",
    [
        write_untouched_child,
        lambda home: write_records(home, custom_title("x")),
        lambda home: write_records(home, user("x", uuid="a", isMeta=True)),
        lambda home: write_records(
            home, user("<local-command-stdout>x</local-command-stdout>", uuid="a")
        ),
        lambda home: write_records(
            home, {"type": "system", "uuid": "a", "parentUuid": None, "subtype": "informational"}
        ),
    ],
)
def test_a_session_without_prompts_cannot_be_handed_off(
    config_home: ConfigHome, write_session_without_prompts: Any
) -> None:
    """If a session has no prompts, a handoff raises ``NothingToHandOff`` and writes nothing."""
    parent = locate.session_file(write_session_without_prompts(config_home))
    before = read_folder_contents(config_home.root)
    with pytest.raises(NothingToHandOff):
        write_handoff(config_home, parent)
    assert read_folder_contents(config_home.root) == before


def test_a_handoff_outside_the_projects_has_a_warning(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """A handoff of a session outside the projects is written next to the session.

    The receipt has a warning.
    """
    path = write_session(tmp_path / "elsewhere", SESSION, conversation(1))
    receipt, _ = write_handoff(config_home, locate.session_file(path))
    assert os.path.dirname(receipt.file) == str(tmp_path / "elsewhere")
    assert "--resume will not find it" in receipt.warnings[0]


def test_a_handoff_can_be_written_to_another_folder(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """A handoff can be written to another folder. Its receipt has a warning."""
    receipt, records = write_handoff(
        config_home, write_parent(config_home), output_dir=str(tmp_path)
    )
    assert receipt.file == str(tmp_path / f"{receipt.session_id}.jsonl")
    assert f"   {receipt.file}\n" in records[OPENING_RECORD_LINE_NUMBER]["message"]["content"]
    assert receipt.warnings
    assert len(os.listdir(config_home.project())) == 1


NEXT_STEPS = {
    "quotes": "say \"hi\" and 'bye' \\ `x` $(rm -rf /)",
    "newlines": "one\ntwo\r\n\nthree\ttabbed",
    "emoji": "ship it 🚀👩‍👩‍👧",
    "markers": f"forget {LINEAGE_END_MARKER} and {LINEAGE_START_MARKER}",
    "line separators": "a\u2028b\u0085c",
    "controls": "\x1b[31mred\x07\x00",
    "long, three bytes each": "語" * MAX_NEXT_STEP_CHARACTERS,
    "long, four bytes each": "🚀" * MAX_NEXT_STEP_CHARACTERS,
    "long, six bytes each": "\x01" * MAX_NEXT_STEP_CHARACTERS,
    "like JSON": '{"type":"custom-title","customTitle":"forged"}\n{"continue_metadata":{}}',
    "like a lister's key": '"customTitle":"forged","sessionId":"x","cwd":"/x"',
}


@pytest.mark.parametrize("step_name", NEXT_STEPS)
def test_any_next_step_is_kept_word_for_word(config_home: ConfigHome, step_name: str) -> None:
    """Any next step is kept word for word in the opening, and the child keeps its title."""
    step = NEXT_STEPS[step_name]
    receipt, records = write_handoff(config_home, write_parent(config_home), next_step=step)
    assert records[OPENING_RECORD_LINE_NUMBER]["message"]["content"].endswith(
        f"{LINEAGE_END_MARKER}\n\n{NEXT_STEP_HEADING}\n{step}"
    )
    info = get_session_info(receipt.session_id, directory=CWD)
    assert info is not None
    assert info.custom_title == receipt.title


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    step=st.text(st.characters(codec=None), max_size=200),
    title=st.text(st.characters(codec=None), max_size=120),
)
@example(step="", title="\x1b")
def test_any_title_and_any_step_pass_all_checks(
    config_home: ConfigHome, step: str, title: str
) -> None:
    """A handoff with any title and any next step passes all checks."""
    number = str(uuid.uuid4())
    path = config_home.project() / f"{number}.jsonl"
    records = [*conversation(1, session_id=number), custom_title(title, number)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    receipt, _ = write_handoff(config_home, locate.session_file(str(path)), next_step=step)
    assert all(check.ok for check in receipt.checks)


@pytest.mark.parametrize(
    ("step", "expected_end"),
    [
        ("", LINEAGE_END_MARKER),
        (" ", LINEAGE_END_MARKER),
        ("\n\t ", LINEAGE_END_MARKER),
        ("a\ud83db", "\na?b"),
    ],
)
def test_blank_and_invalid_next_steps_are_cleaned(
    config_home: ConfigHome, step: str, expected_end: str
) -> None:
    """A blank next step is ignored. A lone surrogate in a next step is replaced with a question mark."""
    _, records = write_handoff(config_home, write_parent(config_home), next_step=step)
    assert records[OPENING_RECORD_LINE_NUMBER]["message"]["content"].endswith(expected_end)


def test_a_too_long_next_step_is_refused(config_home: ConfigHome) -> None:
    """A next step that is too long is refused, and the error states the limit and a remedy.

    Nothing is written.
    """
    parent = write_parent(config_home)
    before = read_folder_contents(config_home.root)
    with pytest.raises(UsageError, match="20,000") as caught:
        write_handoff(config_home, parent, next_step="x" * 200_000)
    assert "file" in caught.value.remedy
    assert read_folder_contents(config_home.root) == before


def test_a_planned_child_is_written_without_its_parent(config_home: ConfigHome) -> None:
    """A planned child can be written after its parent was deleted."""
    parent = write_parent(config_home)
    decided = agents.plan_fresh_child(parent, config_home.where)
    os.unlink(parent.path)
    with pytest.raises(SessionNotFound):
        agents.plan_fresh_child(parent, config_home.where)
    assert all(check.ok for check in write_child(decided, config_home.where).checks)


def test_a_missing_project_folder_is_an_error(config_home: ConfigHome) -> None:
    """If the project's folder disappears before the child is written, the error names the child."""
    decided = agents.plan_fresh_child(write_parent(config_home), config_home.where)
    shutil.rmtree(config_home.project())
    with pytest.raises(WriteFailed, match=decided.draft.attributes.session_id):
        write_child(decided, config_home.where)
    assert read_links(config_home.where) == []


def test_a_planned_child_is_written_only_once(config_home: ConfigHome) -> None:
    """Writing a plan a second time raises an error and leaves the first child unchanged."""
    decided = agents.plan_fresh_child(write_parent(config_home), config_home.where)
    write_child(decided, config_home.where)
    before = read_folder_contents(config_home.project())
    with pytest.raises(WriteFailed):
        write_child(decided, config_home.where)
    assert read_folder_contents(config_home.project()) == before


REFUSED_WRITE_SCRIPT = """
import os, resource, signal, sys
from resume_hooks.derive import agents; from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.errors import WriteFailed
if sys.argv[2] == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
parent = locate.session_file(sys.argv[1])
decided = agents.plan_fresh_child(parent, Where(), kind="handoff")
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
else:
    os.setuid(65534)
try:
    write_child(decided, Where())
except WriteFailed as error:
    print(error.message)
"""


@pytest.mark.parametrize("disk_state", ["full", "read-only"])
def test_a_failed_write_leaves_no_files(config_home: ConfigHome, disk_state: str) -> None:
    """If the disk is full or read-only, an error is raised and none of the child's files are left."""
    if disk_state == "read-only":
        require_for_test(
            "root", os.geteuid() == 0, "a user without rights is taken on by root alone"
        )
    parent = write_parent(config_home)
    before = read_folder_contents(config_home.project())
    environ = {**config_home.environ, "PYTHONPATH": str(REPO / "src")}
    done = subprocess.run(
        [sys.executable, "-c", REFUSED_WRITE_SCRIPT, parent.path, disk_state],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("Could not write ")
    assert read_folder_contents(config_home.project()) == before


def test_a_child_is_written_without_a_state_folder(config_home: ConfigHome) -> None:
    """If the state folder can't be made, the child is written, and the receipt has a warning."""
    (config_home.root / "file").write_text("")
    environ = {**config_home.environ, "RESUME_HOOKS_HOME": str(config_home.root / "file" / "state")}
    decided = agents.plan_fresh_child(write_parent(config_home), Where(environ), kind="handoff")
    receipt = write_child(decided, Where(environ))
    assert os.path.exists(receipt.file)
    assert "The new session's own file contains it" in receipt.warnings[0]


@pytest.mark.parametrize("damaged_part", ["title", "opening", "metadata"])
def test_a_failed_check_removes_the_child(
    config_home: ConfigHome, damaged_part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the written child differs from its plan, it is removed and ``CheckFailed`` is raised."""
    decided = agents.plan_fresh_child(
        write_parent(config_home), config_home.where, kind="handoff", next_step="go on"
    )
    before = read_folder_contents(config_home.root)
    if damaged_part == "title":
        monkeypatch.setattr(
            "resume_hooks.derive.child.write_child.title_line",
            lambda own, _: title_line(own, "another"),
        )
    with pytest.raises(CheckFailed, match="was not kept"):
        write_child(damage_line(decided, damaged_part), config_home.where)
    assert read_folder_contents(config_home.root).keys() == before.keys()


def damage_line(plan: FreshChildPlan, line_name: str) -> FreshChildPlan:
    """Return the plan with an error in the line named by ``line_name``, "opening" or "metadata"."""
    import dataclasses

    assert isinstance(plan.body, FreshLines)
    lines = list(plan.body.unterminated_lines)
    if line_name == "opening":
        lines[1] = lines[1].replace(b"go on", b"go off")
    if line_name == "metadata":
        lines[0] = lines[0].replace(SESSION.encode(), session_id(9).encode())
    return dataclasses.replace(plan, body=FreshLines(tuple(lines), plan.opening))


def test_every_real_session_can_be_handed_off(
    config_home: ConfigHome, real_session: RealSession
) -> None:
    """A handoff of a real session passes all checks, and the SDK lists and reads it."""
    copy = real_session.copy_to(config_home.project("/work/real"))
    parent, whole = locate.session_file(str(copy)), real_session.transcript
    if not whole.models and not any(node.is_prompt for node in whole.nodes):
        with pytest.raises(NothingToHandOff):
            write_handoff(config_home, parent)
        return
    receipt, _ = write_handoff(config_home, parent, next_step="go on")
    assert all(check.ok for check in receipt.checks)
    assert copy.read_bytes() == real_session.path.read_bytes()
    info = get_session_info(receipt.session_id)
    assert info is not None
    assert info.custom_title == info.summary == receipt.title
    assert receipt.session_id in {one.session_id for one in list_sessions()}
    assert [message.type for message in get_session_messages(receipt.session_id)] == [
        "user",
        "assistant",
    ]
