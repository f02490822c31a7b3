"""Tests that a child is planned without side effects, and then written, checked, titled and linked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.cli.schema.base import ReceiptSchema
from resume_hooks.derive import agents, fork, untrim
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import (
    ChildPlan,
    make_planned_receipt,
    write_child,
    write_if_worthwhile,
)
from resume_hooks.derive.trim import plan as trim
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.errors import CheckFailed, NothingToFork, NothingToTrim, UsageError
from resume_hooks.maintenance.fsck import repair
from resume_hooks.sessions import child_titles, locate
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.invocation import resume_command
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    conversation,
    custom_title,
    session_id,
    user,
    write_session,
)

SIMULTANEOUS_HANDOFF_SCRIPT = """
import sys
from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
session = locate.session_file(sys.argv[1])
sys.stdin.readline()
print(write_child(agents.plan_fresh_child(session, Where(), kind="handoff"), Where()).title)
"""


@pytest.fixture
def parent(config_home: ConfigHome) -> SessionFile:
    """Write a session with a title and with content that can be trimmed."""
    records = [
        *conversation(2),
        user("x" * 40_000, uuid="u", parent="r3", ts=5),
        custom_title("Fix the parser"),
    ]
    return locate.session_file(write_session(config_home.project(), SESSION, records))


Planner = Callable[[SessionFile, ConfigHome], ChildPlan]

PLANNERS_BY_KIND: dict[str, Planner] = {
    "handoff": lambda parent, home: agents.plan_fresh_child(parent, home.where, kind="handoff"),
    "fork": lambda parent, home: fork.plan_fork(parent, home.where),
    "rehome": lambda parent, home: fork.plan_fork(parent, home.where, home=str(home.root)),
    "trim": lambda parent, home: trim.plan_trim(
        trim.scan_session(parent), home.where, Options(min_savings=0)
    ),
    "untrim": lambda parent, home: untrim.plan_untrim(scan_trimmed_session(parent), home.where),
    "repair": lambda parent, home: repair.plan_repair(parent, home.where),
}


@pytest.fixture(params=PLANNERS_BY_KIND.items(), ids=lambda pair: pair[0])
def kind_and_planner(request: pytest.FixtureRequest) -> tuple[str, Planner]:
    """Return each kind of child with the function that plans it."""
    kind, plan = request.param
    return kind, plan


@pytest.fixture(
    params=[pair for pair in PLANNERS_BY_KIND.items() if pair[0] != "untrim"],
    ids=lambda pair: pair[0],
)
def writable_kind_and_planner(request: pytest.FixtureRequest) -> tuple[str, Planner]:
    """Return each kind of child except ``untrim``, together with the function that plans it."""
    kind, plan = request.param
    return kind, plan


def test_planning_a_child_writes_nothing(
    kind_and_planner: tuple[str, Planner],
    parent: SessionFile,
    config_home: ConfigHome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planning a child creates no file, folder or lock.

    The receipt of the plan shows the child's title.
    """
    monkeypatch.setattr("resume_hooks.storage.locks.lock_descriptor", pytest.fail)
    monkeypatch.setattr(child_titles, "lock_descriptor", pytest.fail)
    before = {path: path.stat().st_mtime_ns for path in config_home.root.rglob("*")}
    kind, plan_of = kind_and_planner
    plan = plan_of(parent, config_home)
    shown = write_if_worthwhile(plan, config_home.where, dry_run=True)
    assert not shown.written
    assert shown.title in {"", f"Fix the parser · {child_titles.displayed_kind(kind)}"}
    assert {path: path.stat().st_mtime_ns for path in config_home.root.rglob("*")} == before


def test_a_child_is_private_checked_and_linked(
    writable_kind_and_planner: tuple[str, Planner], parent: SessionFile, config_home: ConfigHome
) -> None:
    """A written child is private, passes its checks, and is linked to its parent.

    The parent's file stays unchanged.
    """
    os.utime(parent.path, (1_000, 1_000))
    before = Path(parent.path).read_bytes()
    kind, plan_of = writable_kind_and_planner
    made = write_child(plan_of(parent, config_home), config_home.where)
    assert (Path(parent.path).read_bytes(), os.stat(parent.path).st_mtime) == (before, 1_000)
    assert os.path.basename(made.file) == f"{made.session_id}.jsonl"
    assert (os.path.dirname(made.file) == os.path.dirname(parent.path)) is (kind != "rehome")
    assert os.stat(made.file).st_mode & 0o777 == 0o600
    files = {path for path in (config_home.config / "projects").rglob("*") if path.is_file()}
    assert files == {Path(parent.path), Path(made.file)}
    assert made.written
    assert all(check.ok for check in made.checks)
    assert (made.title, made.kind) == (
        f"Fix the parser · {child_titles.displayed_kind(kind)}",
        kind,
    )
    first = orjson.loads(Path(made.file).read_bytes().partition(b"\n")[0])["continue_metadata"]
    assert (first["continuation_type"], first["parent_session_id"]) == (kind, SESSION)
    (link,) = read_links(config_home.where)
    assert (link.child_id, link.parent_id, link.kind) == (made.session_id, SESSION, kind)
    rows = LineageFinder(config_home.where).find_lineage(made.file)
    assert [(row.session_id, row.kind) for row in rows] == [
        (SESSION, "original"),
        (made.session_id, kind),
    ]


def test_a_failed_check_leaves_no_child(
    writable_kind_and_planner: tuple[str, Planner],
    parent: SessionFile,
    config_home: ConfigHome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a check fails, no file, folder or link of the child is left."""
    plan = writable_kind_and_planner[1](parent, config_home)
    before = set(config_home.root.rglob("*"))
    monkeypatch.setattr(type(plan), "run_checks", lambda *_: [Check("broken", ok=False)])
    with pytest.raises(CheckFailed):
        write_child(plan, config_home.where)
    assert set(config_home.root.rglob("*")) == before


@pytest.mark.parametrize(
    "child_kind",
    [child_kind for child_kind in PLANNERS_BY_KIND if child_kind not in {"repair", "untrim"}],
)
def test_a_subagent_cannot_have_a_child(child_kind: str, config_home: ConfigHome) -> None:
    """Making a child of a sub-agent's transcript raises an error."""
    records = [{**record, "isSidechain": True} for record in conversation(1)]
    agent = locate.session_file(write_session(config_home.project(), SESSION, records))
    with pytest.raises((UsageError, NothingToFork, NothingToTrim)):
        PLANNERS_BY_KIND[child_kind](agent, config_home)


def test_a_title_is_chosen_when_the_child_is_written(
    parent: SessionFile, config_home: ConfigHome
) -> None:
    """Two equal plans get different titles when their children are written.

    The opening contains the title without a number.
    """
    plans = [
        agents.plan_fresh_child(parent, config_home.where, kind="handoff", next_step=step)
        for step in ("on we go",) * 2
    ]
    assert [make_planned_receipt(plan).title for plan in plans] == ["on we go · handoff"] * 2
    written = [write_child(plan, config_home.where) for plan in plans]
    assert [made.title for made in written] == ["on we go · handoff", "on we go · handoff 2"]
    assert [HeadTail(made.file).custom_title for made in written] == [
        made.title for made in written
    ]
    assert f"2. on we go · handoff · {written[1].session_id}" in plans[1].opening


def test_children_of_an_untitled_session_are_named_after_its_goal(config_home: ConfigHome) -> None:
    """The children of a session without a title are named after its first request.

    Children with the same title are numbered.
    """
    asked = (
        "Can you please find out why the upload test on the upgrade branch fails every other night?"
    )
    records = [
        user("hello", uuid="a"),
        assistant("Hi", uuid="b", parent="a"),
        user(asked, uuid="c", parent="b"),
    ]
    parent = locate.session_file(write_session(config_home.project(), SESSION, records))
    plans = [
        fork.plan_fork(parent, config_home.where),
        *(agents.plan_fresh_child(parent, config_home.where) for _ in range(2)),
    ]
    shown = [write_child(plan, config_home.where).title for plan in plans]
    assert shown == [
        "find out why the upload test on the upgrade branch fails every othe… · fork",
        "find out why the upload test on the upgrade branch fails every… · rollover",
        "find out why the upload test on the upgrade branch fails every… · rollover 2",
    ]


def test_ten_simultaneous_children_get_ten_titles(
    parent: SessionFile, config_home: ConfigHome
) -> None:
    """Ten processes that write handoffs of one session at the same time use ten different titles."""
    environ = {**config_home.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SIMULTANEOUS_HANDOFF_SCRIPT, parent.path], env=environ, **pipes
        )  # type: ignore[call-overload]
        for _ in range(10)
    ]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    told = sorted(process.communicate()[0].strip() for process in processes)
    assert told == sorted(
        f"Fix the parser · handoff{number}" for number in ["", *(f" {n}" for n in range(2, 11))]
    )
    assert len(list(Path(parent.path).parent.glob("*.jsonl"))) == 11


@pytest.mark.parametrize("child_kind", ["fork", "trim", "repair"])
def test_consecutive_answers_are_reported(child_kind: str, config_home: ConfigHome) -> None:
    """The receipt warns if two answers are adjacent because the prompt between them was damaged.

    Two adjacent answers without damage cause no warning.
    """
    more = assistant("and then", uuid="b", parent="lost", ts=4, tokens=1_300, message_id="m2")
    records: list[Record | bytes] = [*conversation(1), b'{"type":"user","uuid":"lost', more]
    damaged = locate.session_file(write_session(config_home.project(), SESSION, records))
    (warning,) = write_child(
        PLANNERS_BY_KIND[child_kind](damaged, config_home), config_home.where
    ).warnings
    assert warning.startswith("1 answer directly after another")
    # A client may write two answers in succession although no prompt was lost between them.
    records = [
        *conversation(1),
        {**more, "parentUuid": "r1"},
    ]
    sound = locate.session_file(write_session(config_home.project(), SESSION, records))
    assert (
        write_child(PLANNERS_BY_KIND[child_kind](sound, config_home), config_home.where).warnings
        == ()
    )


CHILD_ID = session_id(2)


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_the_printed_command_quotes_the_folder_correctly(folder: str) -> None:
    """The command in a receipt quotes the folder so that the shell reads the folder's exact name."""
    word, _, rest = resume_command(folder, CHILD_ID).removeprefix("cd ").rpartition(" && ")
    assert rest == f"claude --resume {CHILD_ID}"
    assert plain_line(word) == word
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {word}"], capture_output=True, check=True)
    assert done.stdout.decode() == f"{folder}\0"


@pytest.mark.parametrize("is_written", [True, False])
def test_a_receipt_has_every_documented_field(is_written: bool) -> None:
    """The JSON form of a receipt has the fields that the contract lists."""
    receipt = Receipt(
        CHILD_ID, "/f", "t", session_id(1), "/p", "trim", is_written, "/w", 9, 3, 24, 1,
        (Check("a", ok=True),), ("w",)
    )  # fmt: skip
    assert ReceiptSchema.model_validate(receipt).model_dump() == {
        "session_id": CHILD_ID,
        "file": "/f",
        "title": "t",
        "parent_session_id": session_id(1),
        "parent_file": "/p",
        "kind": "trim",
        "agent": "claude",
        "written": is_written,
        "tokens_before": 9,
        "tokens_after": 3,
        "chars_saved": 24,
        "tools_trimmed": 1,
        "checks": [{"name": "a", "ok": True}],
        "commands": {
            "in_client": f"/resume {CHILD_ID}",
            "shell": f"cd /w && claude --resume {CHILD_ID}",
        },
    }
