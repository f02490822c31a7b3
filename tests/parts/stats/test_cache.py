"""Tests of the counts of all transcripts.

Each file is read once. The counts of a file remain after the file is deleted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.parts.stats import cache
from resume_hooks.parts.stats.cache import TranscriptCounts, gather_counts
from resume_hooks.parts.stats.count import ChildCounts, DayCounts, TranscriptTotals
from resume_hooks.parts.stats.totals import (
    Statistics,
    compute_percentile,
    make_statistics,
    measure_state_folder_entries,
)
from resume_hooks.sessions.link_log import Link, record_link, record_successor
from resume_hooks.sessions.session_files import session_file
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    line,
    session_id,
    user,
    write_session,
)

OTHER_SESSION_ID = session_id(2)


def statistics_of_all_projects(all_counts: cache.AllCounts) -> Statistics:
    """Return the statistics of all projects."""
    return make_statistics(all_counts.transcripts, "")


def test_a_transcript_is_read_once(config_home: ConfigHome) -> None:
    """A transcript is read again only if it has changed."""
    project = config_home.project()
    path = write_session(project, SESSION, conversation(2))
    write_session(project, OTHER_SESSION_ID, conversation(1, session_id=OTHER_SESSION_ID))
    assert gather_counts(config_home.where).newly_read_transcript_count == 2
    assert gather_counts(config_home.where).newly_read_transcript_count == 0
    with open(path, "ab") as stream:
        stream.write(line(user("more", uuid="u", ts=50)) + b"\n")
    again = gather_counts(config_home.where)
    assert again.newly_read_transcript_count == 1
    assert statistics_of_all_projects(again).months[0].turn_count == 4


def test_deleted_sessions_still_count(config_home: ConfigHome) -> None:
    """The counts of a session stay in the statistics after the session is deleted."""
    path = write_session(config_home.project(), SESSION, conversation(2))
    before = statistics_of_all_projects(gather_counts(config_home.where))
    os.unlink(path)
    after = statistics_of_all_projects(gather_counts(config_home.where))
    assert (after.months, after.session_count, after.deleted_session_count) == (before.months, 1, 1)
    assert before.deleted_session_count == 0


def test_counts_of_an_older_version_are_renewed(config_home: ConfigHome) -> None:
    """Counts of an older version are renewed if the transcript still exists, and kept otherwise.

    Counts of an older version do not include the calls before the first edit.
    """
    project = config_home.project()
    path = write_session(project, SESSION, conversation(2))
    write_session(project, OTHER_SESSION_ID, conversation(1, session_id=OTHER_SESSION_ID))
    before = statistics_of_all_projects(gather_counts(config_home.where))
    kept = config_home.config / "resume-hooks" / "stats.json"
    found = orjson.loads(kept.read_bytes())
    kept.write_bytes(
        orjson.dumps(
            found | {"transcripts": {key: row[:-1] for key, row in found["transcripts"].items()}}
        )
    )
    os.unlink(path)
    again = gather_counts(config_home.where)
    assert (again.newly_read_transcript_count, statistics_of_all_projects(again).months) == (
        1,
        before.months,
    )


def test_only_one_copy_of_a_session_counts(config_home: ConfigHome) -> None:
    """Of several copies of a session, only the newest is counted."""
    write_session(config_home.project(), SESSION, conversation(1), mtime=1_000_000_000)
    write_session(config_home.project("/other"), SESSION, conversation(3))
    assert statistics_of_all_projects(gather_counts(config_home.where)).months[0].turn_count == 3


def test_subagents_count_in_the_project_of_their_session(config_home: ConfigHome) -> None:
    """The tokens of a sub-agent are counted in the project of its session.

    The turns of a sub-agent are not counted.
    """
    project = config_home.project()
    write_session(project, SESSION, conversation(1))
    folder = project / SESSION / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_bytes(
        Path(write_session(folder, OTHER_SESSION_ID, conversation(2))).read_bytes()
    )
    (folder / f"{OTHER_SESSION_ID}.jsonl").unlink()
    found = gather_counts(config_home.where)
    told = statistics_of_all_projects(found)
    assert (
        told.session_count,
        told.subagent_count,
        told.months[0].turn_count,
        told.months[0].request_count,
    ) == (
        1,
        1,
        1,
        3,
    )
    assert {one.folder for one in found.transcripts} == {project.name}


def fresh_child_records(kind: str, parent: str, second: float) -> list[Any]:
    """Return the records of a fresh child that was made ``second`` seconds after 09:30 on the tested day."""
    stamp = f"2026-01-31T09:30:{second:02.0f}.000Z"
    said = {
        "parent_session_id": parent,
        "continuation_type": kind,
        "continued_at": stamp,
        "context_tokens": 300,
    }
    return [
        {"continue_metadata": said},
        user("opening", uuid="o", session_id=OTHER_SESSION_ID, ts=second, isCompactSummary=True),
    ]


def test_the_saving_of_a_child_is_measured(config_home: ConfigHome) -> None:
    """A child's saving is the difference between two sizes.

    The first is the size of the parent when the child was made, and the second is that of the
    child's first request.
    """
    project = config_home.project()
    # The parent has 1,500 tokens at its end, and 1,300 after four seconds.
    write_session(project, SESSION, conversation(3))
    own = [
        user("go on", uuid="p", parent="o", ts=20, session_id=OTHER_SESSION_ID),
        assistant("yes", uuid="q", parent="p", ts=21, session_id=OTHER_SESSION_ID, tokens=400),
        assistant("more", uuid="r", parent="q", ts=22, session_id=OTHER_SESSION_ID, tokens=900),
    ]
    write_session(project, OTHER_SESSION_ID, [*fresh_child_records("handoff", SESSION, 4), *own])
    (saving,) = statistics_of_all_projects(gather_counts(config_home.where)).savings
    assert (
        saving.kind,
        saving.child_count,
        saving.continued_child_count,
        saving.measured_child_count,
    ) == (
        "handoff",
        1,
        1,
        1,
    )
    assert (saving.tokens_before, saving.tokens_after, saving.saved_tokens) == (1_300, 390, 910)


def test_an_unused_child_has_no_saving(config_home: ConfigHome) -> None:
    """A child has no saving if it was not continued or if its parent is unknown."""
    write_session(config_home.project(), SESSION, conversation(3))
    write_session(
        config_home.project(), OTHER_SESSION_ID, fresh_child_records("handoff", SESSION, 9)
    )
    (saving,) = statistics_of_all_projects(gather_counts(config_home.where)).savings
    assert (
        saving.child_count,
        saving.continued_child_count,
        saving.measured_child_count,
        saving.saved_tokens,
    ) == (1, 0, 0, 0)
    write_session(
        config_home.project(),
        session_id(3),
        [*fresh_child_records("handoff", session_id(9), 9), *conversation(1, start=20)],
    )
    (saving,) = statistics_of_all_projects(gather_counts(config_home.where)).savings
    assert (
        saving.child_count,
        saving.continued_child_count,
        saving.measured_child_count,
        saving.saved_tokens,
    ) == (2, 1, 0, 0)


@pytest.mark.parametrize(
    "cache_content",
    [
        b"",
        b"[]",
        b"{",
        b'{"version":1}',
        b'{"version":2,"transcripts":{}}',
        b'{"version":1,"transcripts":[]}',
        b'{"version":1,"transcripts":{"a":5,"b":[],"c":[1,2,3,4,5,6,7],"d":["p",1,2,[],{"x":[1]},{},null]}}',
        b'{"version":1,"transcripts":{"d":["p",1,2,[],{},{"a":{"b":[[1]]}},null]}}',
        b'{"version":1,"transcripts":{"d":["p",1,2,[],{},{},[1]]}}',
    ],
)
def test_damaged_counts_are_renewed(config_home: ConfigHome, cache_content: bytes) -> None:
    """Damaged counts are ignored, and the files are counted again."""
    state = config_home.config / "resume-hooks"
    state.mkdir()
    (state / "stats.json").write_bytes(cache_content)
    write_session(config_home.project(), SESSION, conversation(1))
    assert statistics_of_all_projects(gather_counts(config_home.where)).months[0].turn_count == 1
    assert gather_counts(config_home.where).newly_read_transcript_count == 0


def test_a_read_only_state_folder_is_not_a_failure(config_home: ConfigHome) -> None:
    """If the state folder is read-only, all files are counted each time."""
    (config_home.config / "resume-hooks").write_text("no folder")
    write_session(config_home.project(), SESSION, conversation(1))
    for _ in range(2):
        assert gather_counts(config_home.where).newly_read_transcript_count == 1


def test_stored_counts_are_private_and_follow_no_link(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """The file with the counts has mode 0600. If it is a link, a regular file replaces the link."""
    state = config_home.config / "resume-hooks"
    state.mkdir()
    target = tmp_path / "target"
    target.write_text("as it was")
    (state / "stats.json").symlink_to(target)
    write_session(config_home.project(), SESSION, conversation(1))
    gather_counts(config_home.where)
    assert target.read_text() == "as it was"
    assert (state / "stats.json").stat(follow_symlinks=False).st_mode & 0o777 == 0o600
    assert os.listdir(state) == ["stats.json"]


def test_the_number_of_counted_deleted_transcripts_is_limited(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the counts of the newest deleted transcripts are kept."""
    monkeypatch.setattr(cache, "MAX_DELETED_TRANSCRIPTS_IN_CACHE", 2)
    for number in range(1, 5):
        write_session(
            config_home.project(), session_id(number), conversation(1), mtime=1_000_000_000 + number
        )
    gather_counts(config_home.where)
    for path in config_home.project().glob("*.jsonl"):
        path.unlink()
    write_session(config_home.project(), SESSION, conversation(1))
    gather_counts(config_home.where)
    left = {one.session_id for one in gather_counts(config_home.where).transcripts}
    assert left == {SESSION, session_id(3), session_id(4)}


@pytest.mark.parametrize(
    ("durations", "percent", "value"),
    [
        ({}, 95, 0),
        ({5: 1}, 50, 5),
        ({1: 1, 2: 1}, 50, 1),
        ({1: 19, 900: 1}, 95, 1),
        ({1: 18, 900: 2}, 95, 900),
    ],
)
def test_a_percentile_is_a_measured_duration(
    durations: dict[int, int], percent: int, value: int
) -> None:
    """A percentile is one of the measured durations."""
    assert compute_percentile(durations, percent) == value


def test_the_option_since_limits_the_counted_hooks_and_children() -> None:
    """``since`` leaves out earlier hooks and children.

    Hooks are summed by event and owner, and children by month and kind.
    """
    rows = []
    for number, (day, durations, kind) in enumerate(
        (
            ("2026-01-01", {500: 100}, "trim"),
            ("2026-01-02", {1: 1}, "trim"),
            ("2026-01-03", {3: 2, 70: 1}, "fork"),
            ("2026-02-01", {}, "fork"),
        )
    ):
        hooks = {"Stop|ours": {day: durations}, "Stop|others": {day: {9: 1}}}
        counts = TranscriptTotals(
            (), {day: DayCounts(1)}, hooks, ChildCounts(kind, f"{day}T00:00:00.000Z", 10, 4)
        )
        rows.append(
            TranscriptCounts(
                session_id(number), "", "p", 1, exists=True, totals=counts, agent_name="claude"
            )
        )
    found = make_statistics(rows, "2026-01-02")
    assert [(*row,) for row in found.hooks] == [("Stop", False, 3, 9, 9), ("Stop", True, 4, 3, 70)]
    assert [(row.month, row.kind, row.saved_tokens) for row in found.savings] == [
        ("2026-01", "fork", 6),
        ("2026-01", "trim", 6),
        ("2026-02", "fork", 6),
    ]


def test_the_entries_of_the_state_folder_are_measured(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """``measure_state_folder_entries`` lists the largest entry first, and does not follow links."""
    state = config_home.config / "resume-hooks"
    (state / "vault" / "x").mkdir(parents=True)
    (state / "vault" / "x" / "a").write_bytes(b"x" * 500)
    (state / "vault" / "b").write_bytes(b"x" * 10)
    (state / "links.jsonl").write_bytes(b"x" * 100)
    (tmp_path / "big").write_bytes(b"x" * 10_000)
    (state / "link").symlink_to(tmp_path / "big")
    assert measure_state_folder_entries(config_home.where) == [
        ("vault", 2, 510),
        ("links.jsonl", 1, 100),
        ("link", 0, 0),
    ]


def test_a_session_opened_by_clear_counts_as_handoff(config_home: ConfigHome) -> None:
    """A session that ``/clear`` opened with a handoff counts as a handoff.

    The child that this session replaced is not counted.
    """
    project, where = config_home.project(), config_home.where
    rows = [user("go", uuid="u"), assistant("done", uuid="a", parent="u", tokens=90_000)]
    parent = session_file(write_session(project, SESSION, rows))
    made = write_child(agents.plan_fresh_child(parent, where, kind="handoff"), where)
    record_link(Link(OTHER_SESSION_ID, SESSION, "handoff", "2026-01-31T10:00:00.000Z"), where)
    record_successor(made.session_id, OTHER_SESSION_ID, "2026-01-31T10:00:00.000Z", where)
    late = 3_600
    own = [
        user("go on", uuid="v", ts=late),
        assistant("ok", uuid="b", parent="v", ts=late + 1, tokens=30_000),
    ]
    write_session(
        project, OTHER_SESSION_ID, [{**row, "sessionId": OTHER_SESSION_ID} for row in own]
    )
    (row,) = statistics_of_all_projects(gather_counts(where)).savings
    assert (row.kind, row.child_count, row.continued_child_count) == ("handoff", 1, 1)
    assert row.saved_tokens == pytest.approx(60_000, abs=100)
