"""Tests of the outline of a session: for each turn, its prompt, tools, files and tokens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.reading.outline import (
    BRANCH,
    COMPACTED,
    LIVE,
    Outline,
    extract_first_words,
    format_outline,
    make_outline,
)
from resume_hooks.sessions import locate
from resume_hooks.sessions.locate import resolve_transcript
from resume_hooks.sessions.record_references import (
    RecordLines,
    TranscriptNames,
    find_numbered_line,
    names_of_transcript,
    parse_reference,
)
from resume_hooks.transcripts import records
from resume_hooks.transcripts.turns import opens_turn
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    Record,
    assistant,
    boundary,
    call,
    conversation,
    last_prompt,
    result,
    session_bytes,
    summary,
    system,
    tool_result,
    user,
    write_session,
)
from tests.corpus import RealSession

TRANSCRIPT_NAMES = TranscriptNames(SESSION, SESSION[:8])


def outline_of_lines(folder: Path, lines: list[Record | bytes]) -> Outline:
    """Return the outline of a session with these records."""
    return make_outline(locate.session_file(write_session(folder, SESSION, lines)))


def turns_with_tools() -> list[Record | bytes]:
    """Return two turns with tools, files, a failure and counted tokens."""
    calls = [
        call("c1", "Read", file_path="/p/a.py"),
        call("c2", "Edit", file_path="/p/b.py", old_string="x", new_string="y"),
        call("c3", "Bash", command="false"),
    ]
    return [
        user("fix\nthe parser", uuid="u0"),
        assistant(calls, uuid="a1", parent="u0", ts=1, tokens=1_000),
        user(
            [result("c1"), result("c2"), result("c3", "Exit code 1", is_error=True)],
            uuid="u2",
            parent="a1",
            ts=2,
        ),
        assistant("done", uuid="a3", parent="u2", ts=3, tokens=1_500),
        user("thanks", uuid="u4", parent="a3", ts=60),
        assistant(
            [call("c4", "Read", file_path="/p/a.py")], uuid="a5", parent="u4", ts=61, tokens=1_700
        ),
    ]


def test_the_outline_of_a_turn_has_prompt_tools_and_files(tmp_path: Path) -> None:
    """The outline of a turn has its prompt, tools, failures, files and context tokens."""
    first, second = outline_of_lines(tmp_path, turns_with_tools()).turns
    assert (first.number, first.line_number, first.timestamp, first.first_words) == (
        1,
        0,
        "2026-01-31T09:30:00.000Z",
        "fix the parser",
    )
    assert (first.call_counts, first.failure_count) == ({"Read": 1, "Edit": 1, "Bash": 1}, 1)
    assert (first.files, first.edited_files) == (("/p/b.py", "/p/a.py"), ("/p/b.py",))
    assert (
        first.token_count,
        first.added_token_count,
        second.token_count,
        second.added_token_count,
    ) == (
        1_500,
        None,
        1_700,
        200,
    )
    assert (first.state, second.state) == (LIVE, LIVE)


def test_records_before_the_first_prompt_are_turn_0(tmp_path: Path) -> None:
    """Records before the first prompt are turn 0, unless they are only metadata."""
    found = outline_of_lines(
        tmp_path, [summary("all of it", uuid="s", parent=None), *conversation(1)]
    )
    assert [turn.number for turn in found.turns] == [0, 1]
    assert found.turn_count == 1
    assert [
        turn.number
        for turn in outline_of_lines(tmp_path, [last_prompt("x"), *conversation(1)]).turns
    ] == [1]


def test_turns_before_a_compaction_are_marked(tmp_path: Path) -> None:
    """Turns before a compaction are marked as compacted, even if there were several compactions.

    The first turn after a compaction has no number of added tokens.
    """
    lines: list[Record | bytes] = [
        *conversation(1, prefix="a"),
        boundary(uuid="b1", before="a1", ts=10),
        summary("first", uuid="s1", parent="b1", ts=11),
        user("second", uuid="u2", parent="s1", ts=12),
        assistant("yes", uuid="v2", parent="u2", ts=13, tokens=500),
        boundary(uuid="b2", before="v2", ts=20),
        summary("second", uuid="s2", parent="b2", ts=21),
        user("third", uuid="u3", parent="s2", ts=22),
        assistant("yes", uuid="v3", parent="u3", ts=23, tokens=700),
    ]
    found = outline_of_lines(tmp_path, lines)
    assert [turn.state for turn in found.turns] == [COMPACTED, COMPACTED, LIVE]
    assert [turn.added_token_count for turn in found.turns] == [None, None, None]
    assert [
        (
            one.turn_number,
            one.line_number,
            one.summary_line_number,
            one.trigger,
            one.token_count_before,
        )
        for one in found.compactions
    ] == [
        (1, 2, 3, "auto", 150_000),
        (2, 6, 7, "auto", 150_000),
    ]


def test_a_trim_in_place_is_shown_as_a_trim(tmp_path: Path) -> None:
    """A compaction that is followed by the plugin's message about a trim is shown as "trimmed in place"."""
    lines: list[Record | bytes] = [
        *conversation(1),
        boundary(uuid="b", before="r1", ts=10),
        summary("so far", uuid="s", parent="b", ts=11),
        system(
            "informational",
            uuid="i",
            parent="s",
            ts=12,
            content="resume-hooks: trim@60k: 96k tokens, now about 41k",
        ),
        user("go on", uuid="u", parent="i", ts=13),
    ]
    found = outline_of_lines(tmp_path, lines)
    assert [one.trigger for one in found.compactions] == ["trim"]
    shown = format_outline(found, found.turns, TRANSCRIPT_NAMES, 0)
    assert " · trimmed · " in shown
    assert "-- trimmed in place · " in shown
    assert "compacted" not in shown


def test_a_turn_with_a_compaction_inside_is_live(tmp_path: Path) -> None:
    """A turn in which a compaction happened is live, because its end is still sent."""
    lines: list[Record | bytes] = [
        user("go", uuid="u"),
        assistant("on it", uuid="a", parent="u", ts=1),
        boundary(uuid="b", before="a", ts=2),
        summary("so far", uuid="s", parent="b", ts=3),
        assistant("and on", uuid="c", parent="s", ts=4),
    ]
    assert [turn.state for turn in outline_of_lines(tmp_path, lines).turns] == [LIVE]


def test_a_compaction_is_abandoned_if_the_answer_continues_before_it(tmp_path: Path) -> None:
    """A compaction is shown as abandoned if a later answer has a parent from before the compaction.

    Client 2.1.112 wrote answers in this way when a command was waiting during the compaction.
    """
    lines: list[Record | bytes] = [
        *conversation(1),
        boundary(uuid="b", before="r1", ts=10),
        assistant("written past it", uuid="a", parent="r1", ts=13),
        summary("so far", uuid="s", parent="b", ts=11),
        user("go on", uuid="u", parent="a", ts=14),
    ]
    found = outline_of_lines(tmp_path, lines)
    assert [one.is_abandoned for one in found.compactions] == [True]
    assert "abandoned branch, not sent" in format_outline(found, found.turns, TRANSCRIPT_NAMES, 0)


def test_an_abandoned_branch_is_marked(tmp_path: Path) -> None:
    """A turn on a branch that the user abandoned is marked as a branch."""
    lines: list[Record | bytes] = [
        *conversation(1),
        user("wrong way", uuid="w", parent="r1", ts=10),
        assistant("going", uuid="x", parent="w", ts=11),
        user("right way", uuid="y", parent="r1", ts=12),
        assistant("going", uuid="z", parent="y", ts=13),
    ]
    assert [turn.state for turn in outline_of_lines(tmp_path, lines).turns] == [LIVE, BRANCH, LIVE]


def test_an_export_without_ids_has_an_outline(tmp_path: Path) -> None:
    """The outline of an export without record ids has tools, files and failures. All turns are live."""
    lines: list[Record | bytes] = [
        {
            "type": "user",
            "message": {"role": "user", "content": "go"},
            "timestamp": "2025-01-01T00:00:00Z",
        },
        {
            "type": "assistant",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "ok"}]},
        },
        {
            "type": "tool_result",
            "message": {"tool_name": "Bash", "content": "out", "is_error": True},
        },
        {"type": "user", "message": {"role": "user", "content": "more"}},
        {"type": "assistant", "message": {"content": [call("c", "Read", file_path="/x")]}},
    ]
    first, second = outline_of_lines(tmp_path, lines).turns
    assert (first.call_counts, first.failure_count, first.state, first.line_number) == (
        {"Bash": 1},
        1,
        LIVE,
        0,
    )
    assert (second.call_counts, second.files) == ({"Read": 1}, ("/x",))


def test_calls_of_sub_agents_in_the_sessions_file_are_not_counted(tmp_path: Path) -> None:
    """Tool calls of sub-agents in the session's own file are not counted.

    Clients before 2.0 stored these calls there.
    """
    inner = assistant([call("c", "Bash", command="ls")], uuid="s", parent="u", isSidechain=True)
    prompt = user("look", uuid="t", parent=None, isSidechain=True)
    (only,) = outline_of_lines(tmp_path, [user("go", uuid="u"), prompt, inner]).turns
    assert only.call_counts == {}


def test_sub_agents_are_listed_by_turn(config_home: ConfigHome) -> None:
    """The outline lists the sub-agents of each turn first, and then the other sub-agents."""
    project = config_home.project()
    lines: list[Record | bytes] = [
        user("go", uuid="u"),
        assistant(
            [call("c", "Task", description="look", prompt="around", subagent_type="Explore")],
            uuid="a",
            parent="u",
        ),
        user([result("c")], uuid="r", parent="a", toolUseResult={"agentId": "b2"}),
    ]
    path = write_session(project, SESSION, lines)
    own = project / SESSION / "subagents"
    own.mkdir(parents=True)
    side: list[Record] = [
        user("look around", uuid="x", isSidechain=True),
        assistant(
            [call("d", "Bash", command="ls")], uuid="y", parent="x", isSidechain=True, tokens=900
        ),
    ]
    for name in ("agent-a1", "agent-b2"):
        (own / f"{name}.jsonl").write_bytes(session_bytes(side))
    known, other = make_outline(locate.session_file(path)).subagents
    assert (known.name, known.task, known.turn_number, known.record_count) == (
        "agent-b2",
        "look",
        1,
        2,
    )
    assert (other.name, other.task, other.turn_number) == ("agent-a1", "look around", None)
    found = make_outline(resolve_transcript(f"{SESSION}/agent-b2", CWD, config_home.where))
    (turn,) = found.turns
    assert (found.title, turn.call_counts, turn.token_count, turn.state) == (
        "look around",
        {"Bash": 1},
        900,
        LIVE,
    )
    assert found.subagents == ()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<system-reminder>rules\n</system-reminder>\n fix  it", "fix it"),
        ("<system-reminder>never closed", "<system-reminder>never closed"),
        (
            "<command-message>x</command-message><command-name>/do</command-name><command-args>a b</command-args>",
            "/do a b",
        ),
        ([{"type": "image", "source": {}}], "(image)"),
        ("\x1b[31mred\x07", "red"),
        ("<system-reminder> " * 100_000, ("<system-reminder> " * 12)[:197] + "…"),
    ],
)
def test_the_first_words_of_a_prompt_are_on_one_line(
    content: str | list[Record], expected: str
) -> None:
    """The first words of a prompt are the user's text on one line, without the client's additions."""
    assert extract_first_words(user(content, uuid="u")) == expected


def compacted_outline(folder: Path, turns: int) -> Outline:
    """Return the outline of a session with this number of turns, a compaction, and two more turns."""
    middle = [
        boundary(uuid="b", before=f"r{2 * turns - 1}", ts=9e3),
        summary("s", uuid="s", parent="b", ts=9001),
    ]
    return outline_of_lines(
        folder, [*conversation(turns), *middle, *conversation(2, prefix="q", start=9002)]
    )


def test_a_long_outline_keeps_both_ends(tmp_path: Path) -> None:
    """A long outline omits turns in its middle and names the command that prints them."""
    found = compacted_outline(tmp_path, 200)
    text = format_outline(found, found.turns, TRANSCRIPT_NAMES, 2_000)
    lines = text.split("\n")
    (gap,) = [line for line in lines if line.startswith("…")]
    told = re.fullmatch(
        r"… (\d+) turns left out: resume-hooks outline 11111111 --turns (\d+)-(\d+)", gap
    )
    assert told is not None
    count, first, last = map(int, told.groups())
    assert count == last - first + 1
    shown = [int(line.split(" ")[0]) for line in lines[2:] if line[0].isdigit()]
    assert shown == [*range(1, first), *range(last + 1, 203)]
    assert len(text) < 2_000


def test_a_command_lists_the_omitted_turns_of_a_file(tmp_path: Path) -> None:
    """If an outline of the turns that used a file omits turns, it names a command for that file.

    The command prints the omitted turns, and the file's path is quoted for the shell.
    """
    found = compacted_outline(tmp_path, 200)
    text = format_outline(found, found.turns, TRANSCRIPT_NAMES, 2_000, "a dir/it's.py")
    (gap,) = [line for line in text.split("\n") if line.startswith("…")]
    *command, _, _, option, path = shlex.split(gap.partition(": ")[2])
    assert command == ["resume-hooks", "outline", "11111111"]
    assert (option, path) == ("--file", "a dir/it's.py")


def test_a_count_of_one_has_a_singular_noun(tmp_path: Path) -> None:
    """An outline with one turn and one record uses singular nouns."""
    found = outline_of_lines(tmp_path, [user("go", uuid="u")])
    numbers = format_outline(found, found.turns, TRANSCRIPT_NAMES, 0).split("\n")[1]
    assert numbers.startswith("1 turn · ")
    assert ", 1 record · " in numbers


MODULE_OUTLINES: list[Outline] = []


@settings(max_examples=50)
@given(st.integers(1, 12_000))
def test_an_outline_always_fits_its_limit(limit: int) -> None:
    """For any limit, an outline with its notice about omitted turns is shorter than the limit."""
    found = MODULE_OUTLINES[0]
    assert len(format_outline(found, found.turns, TRANSCRIPT_NAMES, limit)) < limit


@pytest.fixture(autouse=True, scope="module")
def _make_outline(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make the outline for ``test_an_outline_always_fits_its_limit``."""
    MODULE_OUTLINES.append(compacted_outline(tmp_path_factory.mktemp("one"), 120))


def test_the_outline_of_a_real_session_has_a_turn_for_each_prompt(
    config_home: ConfigHome, real_session: RealSession
) -> None:
    """The outline of a real session has one turn for each prompt, and all its references are valid.

    The outlines of the session's sub-agents have the right number of records.
    """
    session, file = real_session.file, real_session.path
    found = make_outline(session)
    rows = map(records.parse_record, real_session.lines)
    prompts = [number for number, record in enumerate(rows) if record and opens_turn(record)]
    assert [turn.line_number for turn in found.turns if turn.number] == prompts
    assert [turn.number for turn in found.turns if turn.number] == list(range(1, len(prompts) + 1))
    names = names_of_transcript(session, config_home.where)
    text = format_outline(found, found.turns, names, 0)
    entries = RecordLines(str(file), session.session_id)
    references = re.findall(rf"{re.escape(str(file))}:(\d+)", text)
    assert len(references) >= len(found.turns)
    for number in references:
        assert (
            find_numbered_line(parse_reference(f"{file}:{number}"), entries).parse_record()
            is not None
        )
    for agent in found.subagents:
        assert (
            make_outline(
                resolve_transcript(f"{names.full_name}/{agent.name}", "/", config_home.where)
            ).line_count
            == agent.record_count
        )


def test_a_tool_result_is_not_a_turn(tmp_path: Path) -> None:
    """A tool result does not begin a turn."""
    lines: list[Record | bytes] = [*conversation(1), tool_result("c", uuid="t", parent="r1")]
    assert outline_of_lines(tmp_path, lines).turn_count == 1
