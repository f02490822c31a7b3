"""Tests of finding defects in a Codex session and of repairing them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.cli.schema import schema_of_verb
from resume_hooks.errors import ResumeHooksError
from tests.builders import ConfigHome
from tests.cli.conftest import Cli, Document
from tests.parts.codex.rollouts import (
    OTHER_THREAD_ID,
    THREAD_ID,
    Line,
    call_line,
    codex_rollouts,
    compaction_line,
    item_line,
    message_line,
    meta_line,
    number_lines,
    output_line,
    rollout_line,
    write_rollout,
)

TALK_LINES = [message_line("user", "go"), message_line("assistant", "done")]
FORK_HISTORY_BASE = {
    "thread_id": OTHER_THREAD_ID,
    "end_ordinal_exclusive": 4,
    "end_byte_offset": 900,
}
META_LINE_WITHOUT_VERSION: Line = {
    **meta_line(),
    "payload": {
        key: value for key, value in meta_line()["payload"].items() if key != "cli_version"
    },
}

ROLLOUTS_WITH_FINDINGS: dict[str, tuple[list[Line | bytes], list[tuple[str, int | None]], int]] = {
    "sound": ([meta_line(), *TALK_LINES], [], 2),
    "foreign first line": (
        [{"type": "mine", "x": 1}, meta_line(), *TALK_LINES],
        [("first-line-foreign", 0)],
        2,
    ),
    "short first line": ([META_LINE_WITHOUT_VERSION, *TALK_LINES], [("first-line-short", 0)], 2),
    "other id inside": ([meta_line(OTHER_THREAD_ID), *TALK_LINES], [("session-id-foreign", 0)], 2),
    "base gone": (
        [
            *number_lines(
                [meta_line(history_mode="paginated", history_base=FORK_HISTORY_BASE), *TALK_LINES],
                4,
            )
        ],
        [("base-gone", 0)],
        2,
    ),
    "garbage": ([meta_line(), TALK_LINES[0], b"{oops", TALK_LINES[1]], [("line-unreadable", 2)], 2),
    "bad utf-8": (
        [
            meta_line(),
            TALK_LINES[0],
            b'{"type":"event_msg","timestamp":"x","payload":{"x":"\xff"}}',
            TALK_LINES[1],
        ],
        [("utf8-bad", 2)],
        2,
    ),
    "foreign line": (
        [meta_line(), TALK_LINES[0], {"mine": 1}, b"", TALK_LINES[1]],
        [("line-foreign", 2)],
        2,
    ),
    "orphan output": (
        [meta_line(), TALK_LINES[0], output_line("c1", "x"), TALK_LINES[1]],
        [("tool-result-orphan", 2)],
        2,
    ),
    "open call": (
        [meta_line(), TALK_LINES[0], call_line("c1", "ls"), TALK_LINES[1]],
        [("tool-call-unanswered", 2)],
        3,
    ),
    "encrypted": (
        [
            meta_line(),
            TALK_LINES[0],
            compaction_line([TALK_LINES[0], item_line("compaction", encrypted_content="x")]),
            TALK_LINES[1],
        ],
        [("summary-encrypted", 2)],
        3,
    ),
}


@pytest.fixture
def codex_folder(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a temporary CODEX_HOME."""
    monkeypatch.delenv("CODEX_HOME", raising=False)
    return config_home.root / ".codex"


def fsck_data_of_run(done: subprocess.CompletedProcess[bytes], code: int) -> Any:
    """Check the exit code of a run, and return its validated JSON data."""
    assert (done.returncode, done.stderr) == (code, b"")
    data = json.loads(done.stdout)["data"]
    schema_of_verb("fsck").model_validate(data)
    return data


@pytest.mark.parametrize("name", ROLLOUTS_WITH_FINDINGS)
def test_each_defect_is_found_and_repaired(
    name: str, codex_folder: Path, cli: Cli, document: Document
) -> None:
    """Each defect is found with its code and line.

    The repaired child contains all usable items and no defects. The session is unchanged.
    """
    lines, expected, items = ROLLOUTS_WITH_FINDINGS[name]
    path = write_rollout(codex_folder, lines)
    if name == "garbage":
        path.write_bytes(path.read_bytes() + b'{"type":"response_i')
        expected = [*expected, ("line-torn", 4)]
    before = path.read_bytes()
    bad = any(code not in HARMLESS_FINDING_CODES for code, _ in expected)
    (found,) = fsck_data_of_run(cli("fsck", THREAD_ID, "--json"), int(bad))["sessions"]
    assert found["session_file"] == str(path)
    rows = [(kind["code"], row["record"]) for kind in found["kinds"] for row in kind["findings"]]
    assert rows == expected
    assert fsck_data_of_run(cli("fsck", "--all", "--json"), int(bad))["sessions"] == [found]
    done = document("fsck", THREAD_ID, "--repair")["data"]
    assert path.read_bytes() == before
    assert (done["repair"] is not None) is bad
    if done["repair"]:
        child = done["repair"]["session_id"]
        (again,) = document("fsck", child)["data"]["sessions"]
        assert again["kinds"] == []
        kept = [json.loads(raw) for raw in Path(done["repair"]["file"]).read_bytes().splitlines()]
        assert sum(one["type"] == "response_item" for one in kept) == items
        assert bool(done["lost"]) is (name in {"base gone", "garbage"})


HARMLESS_FINDING_CODES = {
    "session-id-foreign",
    "line-foreign",
    "tool-call-unanswered",
    "summary-encrypted",
}


def test_fsck_of_an_unreadable_session_is_an_error(
    codex_folder: Path, cli: Cli, document: Document
) -> None:
    """``fsck`` of an unreadable session raises an error. ``fsck --all`` lists a finding instead."""
    write_rollout(codex_folder, [rollout_line("event_msg", {"type": "x"}), *TALK_LINES])
    assert "is not a Codex rollout" in document("fsck", THREAD_ID, code=1)["error"]["message"]
    (found,) = fsck_data_of_run(cli("fsck", "--all", "--json"), 1)["sessions"]
    assert [kind["code"] for kind in found["kinds"]] == ["session-unreadable"]


@pytest.mark.skipif(
    not codex_rollouts(), reason="the corpus of rollouts is missing: set RESUME_HOOKS_CODEX"
)
def test_real_rollouts_contain_no_error(config_home: ConfigHome) -> None:
    """Rollouts that Codex resumes have no errors and no warnings."""
    from resume_hooks.maintenance.fsck.diagnose import examine_session
    from resume_hooks.sessions.agents.registry import agent_of_path

    home = config_home.root / ".codex" / "sessions"
    home.mkdir(parents=True)
    found: dict[str, Any] = {}
    look: Callable[[str], Any] = lambda path: agent_of_path(path, config_home.where)  # noqa: E731 - a name for one line
    for source in codex_rollouts():
        (home / source.name).write_bytes(source.read_bytes())
    for path in sorted(home.iterdir()):
        try:
            report = examine_session(look(str(path)).open_session(str(path)), config_home.where)
        except ResumeHooksError as error:
            found[path.name] = error.message
            continue
        if not report.has_only_notes:
            found[path.name] = [group.kind.code for group in report.groups]
    assert found == {}
