"""Tests that run every verb.

Invalid arguments cause one error sentence and exit code 2, and a dry run writes nothing.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    tool_result,
    tool_use,
    write_session,
)
from tests.cli.conftest import Cli, Document

OLD_MTIME = 1_700_000_000
ID, REFERENCE = SESSION, f"{SESSION}:5"
INVALID_COMMANDS = [
    ("info '  '", ""),
    ("config clipbord", "There is no setting 'clipbord'"),
    ("config clipbord x", "There is no setting 'clipbord'"),
    ("config clipboard x", "clipboard must be one of"),
    ("config context_window -- -1", "context_window must be a whole number"),
    ("delete", "Give either a SESSION or --empty-trash"),
    (f"delete {ID}", "Deleting needs a confirmation"),
    ("delete --empty-trash", "Deleting needs a confirmation"),
    (f"delete {ID} --empty-trash --yes", "Give either a SESSION or --empty-trash"),
    (f"delete {ID} --older-than 3 --yes", "--older-than and --damaged need --empty-trash"),
    (f"delete {ID} --damaged --yes", "--older-than and --damaged need --empty-trash"),
    ("delete --empty-trash --older-than -1 --yes", ""),
    ("delete --empty-trash --older-than x --yes", ""),
    ("delete '' --yes", ""),
    (f"restore {ID} --list", "--list shows everything that can be restored"),
    ("restore ''", "The locator is empty"),
    (f"restore {ID} more", ""),
    ("archive --all x", "Give either SESSIONs, --project or --all"),
    ("archive --all --project", "Give either SESSIONs, --project or --all"),
    ("archive --list --verify", "can't be combined"),
    ("archive --verify --all", "--verify, --list and --forget take SESSIONs"),
    ("archive --forget", "--forget needs a SESSION"),
    ("archive --forget --project", "--verify, --list and --forget take SESSIONs"),
    ("archive --slim --all", "--slim needs exactly one SESSION"),
    (f"archive --slim {ID} {session_id(2)}", "--slim needs exactly one SESSION"),
    ("archive --slim --list", "can't be combined"),
    (f"resume {ID} --fork --way trim", "--fork and --way can't be combined"),
    (f"resume {ID} --copy --print", "--copy and --print can't be combined"),
    (f"resume {ID} --way nonsense", ""),
    (f"resume {ID} --all", "--all only works on a terminal, with the list of sessions"),
    (f"handoff {ID} --full", "--full needs --print"),
    (f"handoff {ID} --output-dir /no/such", "--output-dir"),
    (f"handoff {ID} --print --start", "--print creates no session"),
    (f"handoff {ID} --print --edit", "--print creates no session"),
    (f"handoff {ID} --force", "--force"),
    (f"handoff {ID} --edit", "--edit needs a terminal"),
    (f"handoff {ID} --new-task ' '", "--new-task needs a task"),
    (f"handoff {ID} --new-task that -n this", "--new-task needs a task"),
    (f"fork {ID} --at 1 --turn 1", "--at and --turn can't be combined"),
    (f"fork {ID} --here --home /", "--here and --home can't be combined"),
    (f"fork {ID} --here --output-dir /", "--here and --output-dir can't be combined"),
    (f"fork {ID} --home /no/such", "is not a folder"),
    (f"fork {ID} --before soon", "'soon' is not a date or a time"),
    (f"fork {ID} --turn 9", "No turn 9"),
    (f"fork {ID} --turn x", "not a valid integer"),
    (f"fork {ID} --at parser", "is not a line number"),
    (f"fork {ID} --before 2020-01-01", "There is no message before 2020-01-01 00:00 UTC"),
    (f"fork {ID} --at 99", "lines 0 to 6"),
    (f"fork {ID} --start --output-dir /", "can't start a session in another folder"),
    (f"untrim {ID} --record -1", ""),
    (f"fsck --all {ID}", "--all can't be combined with SESSION"),
    ("fsck --all --repair", "--all can't be combined with SESSION"),
    (f"fsck {ID} --branch a1", "--branch and --dry-run need --repair"),
    (f"fsck {ID} --dry-run", "--branch and --dry-run need --repair"),
    ("doctor --index status --bundle", "can't be combined"),
    ("doctor -o x.json", "-o needs --bundle"),
    ("install --completion tcsh", ""),
    ("sessions --all --project /x", "--all and --project can't be combined"),
    ("sessions --limit -1", "-1 is not in the range"),
    ("sessions --offset x", "'x' is not a valid integer"),
    ("sessions word", "unexpected extra argument"),
    ("sessions --page", "No such option"),
    ("search --nope x", "No such option: --nope"),
    ("search x --nope=1", "No such option: --nope"),
    ("search", "No words to search for"),
    ("search -h", "The query has only excluded words"),
    ("search !?", "'!?' contains no word"),
    ("search x --since soon", "'soon' is not a date or a time"),
    ("search x --all --lineage .", "--lineage and --all can't be combined"),
    ("search x --or -y", "The query has only excluded words"),
    ("search x --or ''", "No words to search for"),
    ("search x --limit 0", "0 is not in the range"),
    ("search x --role nobody", "'nobody' is not one of"),
    (f"outline {ID} --turns x", ""),
    (f"outline {ID} --turns 9", ""),
    ("read", "No record is named"),
    (f"read {ID}", "names no record"),
    ("read 1a2b3c4d", "names no record"),
    (f"read {ID}:x", ""),
    (f"read {ID}:99", ""),
    (f"read {ID}:{ID}", ""),
    (f"read {REFERENCE} --session {ID}", ""),
    (f"read {REFERENCE} --before x", "--before takes a number of records"),
    (f"read {REFERENCE} --before -1", "--before takes a number of records"),
    (f"read {REFERENCE} --before {REFERENCE}", "--before takes a number of records"),
    (f"read {REFERENCE} --after -1", ""),
    (f"read {REFERENCE} --before 1 --raw", "--skip and --raw only work for a single record"),
    (f"read {REFERENCE} --limit 3", "--limit is for pages"),
    (f"read {ID} --turns x", ""),
    (f"read {ID} --turns 99", ""),
    (f"read {ID} --turns 1 --page", "can't be combined"),
    (f"read {ID} --errors --commands", "can't be combined"),
    (f"read {ID} --turns 1 --before 2", "--before applies to a single record"),
    (f"read {ID} --errors --after 2", "--after applies to a single record"),
    (f"read {ID} --commands --skip 2", "--skip applies to a single record"),
    (f"read {ID} --page --limit 0", ""),
    (f"read {ID} --page --before ffff:2", "is not a record of"),
    (f"read {ID} --page --before 99", ""),
    (f"read {ID} --page --before @1", ""),
    (f"read {ID} --page --before {session_id(6)}@0", ""),
    (f"read {ID} --page --before @", ""),
    (f"read {ID} --page --before ''", ""),
    (f"read {ID} --turns 1 --session {ID}", "The argument and --session both name a session"),
    ("rename", ""),
    (f"rename {ID}", "Give exactly one of TITLE, --tag and --no-tag"),
    (f"rename {ID} ''", ""),
    (f"rename {ID} {'x' * 201}", ""),
    (f"rename {ID} latest", ""),
    (f"rename {ID} {ID}", ""),
    ("rename '' x", ""),
    (f"rename {ID} -- -x", ""),
    (f"rename {ID} x y", ""),
    (f"rename {ID} \udcff\udcfe", ""),
    (f"rename {ID} --tag", ""),
    (f"rename {ID} --tag ''", "The tag is empty"),
    (f"rename {ID} --tag x --no-tag", "Give exactly one of TITLE, --tag and --no-tag"),
    (f"rename {ID} x --tag x", "Give exactly one of TITLE, --tag and --no-tag"),
    (f"rename {ID} --tag \u200b", ""),
    ("rename --tag x", ""),
]
"""Invalid command lines, each with a part of the error message.

The part is "" if the error message comes from click.
"""


@pytest.fixture
def old_session_home(config_home: ConfigHome) -> ConfigHome:
    """Write an old session with two turns, a call and its result, and return the home.

    The session's file has the lines 0 to 6.
    """
    call = (
        tool_use("c", uuid="c1", parent="r3", ts=5),
        tool_result("c", uuid="c2", parent="c1", ts=6),
    )
    rows = [*conversation(2), *call, custom_title("Fix the parser")]
    write_session(config_home.project(), SESSION, rows, mtime=OLD_MTIME)
    return config_home


def home_state(old_session_home: ConfigHome) -> dict[Path, tuple[int, bytes]]:
    """Return the modification time and the content of each path in the home."""
    return {
        path: (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in old_session_home.root.rglob("*")
    }


@pytest.mark.parametrize(
    ("command_line", "expected_text"),
    INVALID_COMMANDS,
    ids=[command_line.encode("ascii", "replace").decode() for command_line, _ in INVALID_COMMANDS],
)
def test_invalid_arguments_are_a_usage_error(
    old_session_home: ConfigHome,
    cli: Cli,
    document: Document,
    command_line: str,
    expected_text: str,
) -> None:
    """Invalid arguments cause one error sentence and exit code 2, and the verb writes nothing."""
    verb, *words = shlex.split(command_line)
    before = home_state(old_session_home)
    done = cli(verb, *words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"resume-hooks: ")
    assert expected_text in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 2 or verb == "config"
    error = document(verb, *words, code=2)["error"]
    assert error["code"] == "usage"
    assert error["message"]
    assert error["remedy"] or verb == "config"
    assert home_state(old_session_home) == before


def test_json_cannot_be_combined_with_fork_print_or_raw(
    old_session_home: ConfigHome, document: Document
) -> None:
    """``--json`` cannot be combined with ``--fork``, ``--print`` or ``--raw``."""
    for verb, *words in (
        ("resume", ID, "--fork"),
        ("resume", ID, "--print"),
        ("read", REFERENCE, "--raw"),
    ):
        assert document(verb, *words, code=2)["error"]["code"] == "usage"


@pytest.mark.parametrize(
    "command_line",
    [
        f"handoff {ID}", f"handoff {ID} --start", f"rollover {ID} --quick --start", f"fork {ID}", f"fork {ID} --turn 1",
        f"trim {ID} --keep-recent 0 --min-savings 0", f"trim {ID} --in-place", f"untrim {ID} --all",
        f"fsck {ID} --repair",
        f"rename {ID} New", f"rename {ID} --tag new", f"delete {ID}", "delete --empty-trash", f"archive {ID}",
        "archive --all", f"archive --slim {ID}", "install", "install --remove --purge",
    ],
)  # fmt: skip
def test_a_dry_run_writes_nothing(
    old_session_home: ConfigHome, cli: Cli, document: Document, command_line: str
) -> None:
    """``--dry-run`` prints what the command would do, as text and as a document, and writes nothing."""
    verb, *words = shlex.split(command_line)
    before = home_state(old_session_home)
    data = document(verb, *words, "--dry-run")["data"]
    assert not data.get("ran")
    assert not data.get("written")
    done = cli(verb, *words, "--dry-run")
    assert (done.returncode, done.stderr) == (0, b"")
    assert re.search(rb"[Nn]othing|would (write|run|go)", done.stdout)
    assert home_state(old_session_home) == before
