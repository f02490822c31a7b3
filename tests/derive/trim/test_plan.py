"""Tests that a trimmed child is checked, linked and complete, and that its parent is unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from resume_hooks.cli.verb_table import load_command
from resume_hooks.derive import agents, untrim
from resume_hooks.derive.child.write_child import make_planned_receipt, write_child
from resume_hooks.derive.originals import look_up_original
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import PLACEHOLDER_LEGEND, decide_trim
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.errors import NothingToTrim
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.lineage_block import LINEAGE_END_MARKER, LINEAGE_START_MARKER
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.locate import session_file
from resume_hooks.sessions.opening_layout import extract_next_step
from resume_hooks.sessions.record_references import parse_reference
from resume_hooks.transcripts.context_size import measure_context_from_tail
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.records import join_text_blocks
from resume_hooks.transcripts.tokens import read_size_stated_in_first_line
from resume_hooks.transcripts.transcript import scan_transcript
from tests import builders
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    boundary,
    conversation,
    custom_title,
    session_id,
    summary,
)
from tests.derive.trim.sessions import (
    LONG_OUTPUT,
    Chain,
    plan_trim_of_file,
    read_file_records,
    read_records_by_uuid,
    trim_file,
    write_project_session,
)

SHORT_OUTPUT = "short output " * 20
"""This text of 260 characters is below the usual threshold and above a stricter one."""


def write_parser_session(home: ConfigHome, session_id: str = SESSION) -> Path:
    """Write a session with a long output, a shorter output and a title."""
    chain = (
        Chain()
        .ask("fix the parser")
        .call_with_result("t1", "Read", LONG_OUTPUT, file_path="/a")
        .call_with_result("t2", "Bash", SHORT_OUTPUT)
        .add_short_turns(1)
    )
    return write_project_session(home, [*chain.rows, custom_title("The parser")], session_id)


def list_lineage_blocks(path: Path) -> list[str]:
    """Return the texts of the records that begin with a lineage."""
    return [
        said
        for row in read_file_records(path)
        if (said := join_text_blocks(row)).startswith(LINEAGE_START_MARKER)
    ]


def test_a_trimmed_child_is_linked_and_titled(config_home: ConfigHome) -> None:
    """A trimmed child names its parent in its first line, in a link and in its lineage.

    A second child has a number in its title.
    """
    path = write_parser_session(config_home)
    child, other = trim_file(config_home, path), trim_file(config_home, path)
    first = read_file_records(child)[0]
    assert first["continue_metadata"]["parent_session_id"] == SESSION
    assert first["continue_metadata"]["continuation_type"] == "trim"
    assert first["trim_metadata"]["parent_file"] == str(path)
    assert first["trim_metadata"]["stats"]["tools_trimmed"] == 1
    parent, row = LineageFinder(config_home.where).find_lineage(str(child))
    # The child is new, although its records are old.
    assert parent.ended_at < row.created_at == row.ended_at == first["trim_metadata"]["trimmed_at"]
    assert [HeadTail(str(file)).title for file in (child, other)] == [
        "The parser · trim",
        "The parser · trim 2",
    ]
    assert [(link.parent_id, link.kind) for link in read_links(config_home.where)] == [
        (SESSION, "trim")
    ] * 2
    lineage = LineageFinder(config_home.where).find_lineage(str(child))
    assert [row.derivation_type for row in lineage] == ["original", "trimmed"]


def test_the_first_trim_adds_a_lineage_block(config_home: ConfigHome) -> None:
    """The first trim adds a hidden first record with the lineage and an explanation of placeholders."""
    child = trim_file(config_home, write_parser_session(config_home))
    (block,) = list_lineage_blocks(child)
    assert block.endswith(f"{LINEAGE_END_MARKER}\n{PLACEHOLDER_LEGEND}")
    assert SESSION in block
    first = next(row for row in read_file_records(child) if "uuid" in row)
    assert (first["parentUuid"], first["isMeta"], join_text_blocks(first)) == (None, True, block)


def test_a_second_trim_replaces_the_lineage_block(config_home: ConfigHome) -> None:
    """A second trim replaces the lineage with one that names both ancestors."""
    child = trim_file(config_home, write_parser_session(config_home))
    again = trim_file(config_home, child, threshold=200)
    (block,) = list_lineage_blocks(again)
    assert block.count(PLACEHOLDER_LEGEND) == 1
    # Each session's id appears twice, because it is also in the name of the session's file.
    assert [block.count(name) for name in (SESSION, child.stem)] == [2, 2]
    assert "· trimmed" in block


def test_a_stricter_threshold_trims_the_remaining_contents(config_home: ConfigHome) -> None:
    """A second trim with a lower threshold trims further content.

    The new placeholder names the session that contains the full content.
    """
    path = write_parser_session(config_home)
    child = trim_file(config_home, path)
    again = trim_file(config_home, child, threshold=200)
    first, second = read_records_by_uuid(again)["c2"], read_records_by_uuid(again)["c4"]
    assert (first["original_session_id"], first["original_index"]) == (SESSION, 2)
    assert first["message"] == read_records_by_uuid(child)["c2"]["message"]
    # The first child contains this content in full.
    assert second["original_session_id"] == child.stem
    assert read_file_records(child)[second["original_index"]]["uuid"] == "c4"


def test_a_record_trimmed_twice_names_its_original(
    config_home: ConfigHome,
) -> None:
    """If two trims replace two results of one record, both placeholders refer to the original record."""
    results = [builders.result("t1", LONG_OUTPUT), builders.result("t2", SHORT_OUTPUT)]
    chain = (
        Chain()
        .ask()
        .answer([builders.call("t1"), builders.call("t2")])
        .ask(results)
        .add_short_turns(1)
    )
    path = write_project_session(config_home, chain)
    again = trim_file(config_home, trim_file(config_home, path), threshold=200)
    row = read_records_by_uuid(again)["c2"]
    assert (row["original_session_id"], row["original_session"], row["original_index"]) == (
        SESSION,
        str(path),
        2,
    )
    assert [
        f"original: {SESSION[:8]}:2]" in block["content"] for block in row["message"]["content"]
    ] == [True, True]


def test_a_record_trimmed_by_another_tool_keeps_its_original_session(
    config_home: ConfigHome,
) -> None:
    """If another tool trimmed a record, the original session's id comes from the file that the tool named."""
    root = session_id(9)
    chain = Chain().ask().call_with_result("t1")
    whole = [
        *({"type": "mode", "mode": "default"} for _ in range(7)),
        {**chain.rows[2], "sessionId": root},
    ]
    builders.write_session(config_home.project(), root, whole)
    chain.rows[2] |= {
        "truncated": True,
        "original_session": f"/x/{root}.jsonl",
        "original_index": 7,
    }
    row = read_records_by_uuid(trim_file(config_home, write_project_session(config_home, chain)))[
        "c2"
    ]
    assert row["message"]["content"][0]["content"].endswith(f"original: {root[:8]}:7]")
    assert (row["original_session_id"], row["original_index"]) == (root, 7)


def test_a_reference_to_a_deleted_session_is_replaced(config_home: ConfigHome) -> None:
    """If the session with the original was deleted, the reference is replaced.

    A second trim then refers to the first trimmed child.
    """
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    results = [builders.result("t1", LONG_OUTPUT), builders.result("t2", SHORT_OUTPUT)]
    chain = (
        Chain()
        .ask()
        .answer([builders.call("t1"), builders.call("t2")])
        .ask(results)
        .add_short_turns(1)
    )
    path = write_project_session(config_home, chain)
    child = trim_file(config_home, path)
    path.unlink()
    again = trim_file(config_home, child, threshold=200)
    row = read_records_by_uuid(again)["c2"]
    assert row["original_session_id"] == child.stem
    assert (
        read_file_records(child)[row["original_index"]]["message"]["content"][1]["content"]
        == SHORT_OUTPUT
    )
    found = look_up_original(
        parse_reference(f"{again.stem}:{read_file_records(again).index(row)}"),
        builders.CWD,
        config_home.where,
    )
    assert found.original.file_path == str(child)


@pytest.mark.parametrize(
    "reference_fields",
    [
        {"original_index": -1},
        {"original_index": True},
        {"original_index": "7"},
        {"original_session": "", "original_session_id": "no id"},
    ],
)
def test_an_invalid_reference_is_replaced(
    config_home: ConfigHome, reference_fields: Record
) -> None:
    """An invalid reference to a record's original is replaced with the real session and line."""
    chain = Chain().ask().call_with_result("t1")
    chain.rows[2] |= {
        "truncated": True,
        "original_session": "/x/y.jsonl",
        "original_index": 7,
        **reference_fields,
    }
    row = read_records_by_uuid(trim_file(config_home, write_project_session(config_home, chain)))[
        "c2"
    ]
    assert (row["original_session_id"], row["original_index"]) == (SESSION, 2)


def test_a_trimmed_handoff_keeps_its_next_step(config_home: ConfigHome) -> None:
    """If a handoff is trimmed, its next step is kept and its lineage is replaced."""
    parent = write_parser_session(config_home)
    step = "go on with the lexer"
    asked = agents.plan_fresh_child(
        session_file(str(parent)), config_home.where, kind="handoff", next_step=step
    )
    made = write_child(asked, config_home.where)
    chain = Chain().ask().call_with_result("t1").add_short_turns(1)
    last = read_file_records(Path(made.file))[-2]["uuid"]
    with open(made.file, "ab") as stream:
        for row in chain.rows:
            later = {**row, "parentUuid": row["parentUuid"] or last, "sessionId": made.session_id}
            stream.write(
                builders.line({**later, "timestamp": row["timestamp"].replace("2026", "2036")})
                + b"\n"
            )
    child = trim_file(config_home, Path(made.file))
    (block,) = list_lineage_blocks(child)
    assert extract_next_step(block) == step
    assert made.session_id in block
    assert block.count(LINEAGE_START_MARKER) == 1


def make_file_snapshot(message_id: str, **extra_fields: Any) -> Record:
    """Return a file snapshot, the record that the client writes when it backs up files at a message."""
    return {
        "type": "file-history-snapshot",
        "messageId": message_id,
        "snapshot": {
            "messageId": message_id,
            "trackedFileBackups": {"/a": {"backupFileName": "b@v1"}},
        },
        **extra_fields,
    }


def test_snapshots_of_kept_messages_are_copied(config_home: ConfigHome) -> None:
    """Only the file snapshots of kept messages are copied."""
    before = conversation(1, prefix="old")
    marks = [boundary(uuid="b", before="old1", ts=5), summary("sum", uuid="s", parent="b", ts=6)]
    chain = [
        {**row, "parentUuid": row["parentUuid"] or "s"}
        for row in Chain().ask().call_with_result("t1").rows
    ]
    for place, row in enumerate(chain):
        row["timestamp"] = builders.iso_time(20 + place)
    delta = {
        "type": "file-history-delta",
        "messageId": "c2",
        "snapshotMessageId": "c0",
        "trackingPath": "/a",
    }
    rows = [
        *before,
        make_file_snapshot("old0"),
        *marks,
        chain[0],
        make_file_snapshot("c0"),
        *chain[1:],
        delta,
        make_file_snapshot("gone"),
    ]
    child = trim_file(config_home, write_project_session(config_home, rows))
    kept = [line for line in child.read_bytes().split(b"\n") if b"file-history" in line]
    assert kept == [builders.line(make_file_snapshot("c0")), builders.line(delta)]


def test_a_snapshot_gets_the_childs_session_id(config_home: ConfigHome) -> None:
    """A session id in a file snapshot is replaced with the child's id.

    Current clients write no session id to file snapshots.
    """
    path = write_project_session(
        config_home,
        [*Chain().ask().call_with_result("t1").rows, make_file_snapshot("c0", sessionId=SESSION)],
    )
    child = trim_file(config_home, path)
    assert make_file_snapshot("c0", sessionId=child.stem) in read_file_records(child)


def test_a_trimmed_child_can_be_written_to_another_folder(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """If a trimmed child is written to another folder, a warning says that the client will not find it."""
    folder = tmp_path / "out"
    folder.mkdir()
    scanned = plan.scan_session(session_file(str(write_parser_session(config_home))))
    decided = plan.plan_trim(
        scanned,
        config_home.where,
        plan_trim_of_file(config_home, Path(scanned.session.path)).options,
        output_dir=str(folder),
    )
    receipt = write_child(decided, config_home.where)
    assert Path(receipt.file).parent == folder
    assert any("will not find it" in warning for warning in receipt.warnings)


@pytest.mark.parametrize(
    "rows",
    [
        [custom_title("only a title")],
        [builders.system("informational", uuid="s")],
        [{"type": "summary", "summary": "x", "leafUuid": "y"}],
        [
            builders.user(
                "<local-command-stdout>of the client's own</local-command-stdout>", uuid="u"
            )
        ],
    ],
)
def test_a_session_without_messages_cannot_be_trimmed(
    config_home: ConfigHome, rows: list[Record]
) -> None:
    """Trimming a session without messages raises ``NothingToTrim``, which says to send a prompt first."""
    with pytest.raises(NothingToTrim) as nothing:
        plan_trim_of_file(config_home, write_project_session(config_home, rows))
    assert nothing.value.remedy.startswith("Send a prompt first")


def test_a_trim_below_the_minimum_saving_has_no_child(config_home: ConfigHome) -> None:
    """If a trim saves too little, its receipt names no file, and both sizes are equal."""
    decided = plan_trim_of_file(config_home, write_parser_session(config_home), min_savings=5_000)
    shown = make_planned_receipt(decided)
    assert (decided.is_worthwhile, shown.written, shown.file, shown.session_id) == (
        False,
        False,
        "",
        "",
    )
    assert shown.tokens_after == shown.tokens_before


def test_the_verb_trim_writes_no_child_if_it_saves_too_little(config_home: ConfigHome) -> None:
    """If a trim saves too little, the verb ``trim`` says so and leaves the project unchanged."""
    path = write_parser_session(config_home)
    before = sorted(config_home.root.rglob("*"))
    done = CliRunner().invoke(
        load_command("trim"), [str(path), "--keep-recent", "0", "--min-savings", "5000"]
    )
    assert done.exit_code == 0
    assert "Trimming would not pay" in done.output
    assert sorted(config_home.root.rglob("*")) == before
    assert (
        CliRunner().invoke(load_command("trim"), [str(path), "--keep-recent", "0"]).exit_code == 0
    )
    assert len(list(path.parent.glob("*.jsonl"))) == 2


def test_a_trimmed_child_has_no_token_counts(config_home: ConfigHome) -> None:
    """A trimmed child has no token counts, because old clients would compact the child immediately.

    The first records have the entrypoint of a terminal, because the client would not list the child
    otherwise.
    """
    chain = (
        Chain()
        .ask(entrypoint="sdk-py")
        .answer("yes", tokens=150_000)
        .call_with_result("t1")
        .answer("so", tokens=160_000)
    )
    child = trim_file(config_home, write_project_session(config_home, chain))
    counts = [
        row["message"]["usage"]
        for row in read_file_records(child)
        if "usage" in row.get("message", {})
    ]
    assert counts == [dict.fromkeys(builders.usage(100), 0)] * 2
    assert all(row["entrypoint"] == "cli" for row in list(read_records_by_uuid(child).values())[:2])
    assert not any(node.context_tokens for node in scan_transcript(str(child)).chain)


def test_savings_by_rule_and_by_tool_have_the_same_sum(config_home: ConfigHome) -> None:
    """The total savings of all rules, the total savings of all tools, and the trim's savings are equal."""
    chain = Chain().ask().answer("a", tokens=10_000)
    for number in range(4):
        chain.call_with_result(
            f"t{number}", "Read" if number % 2 else "Bash", f"{number} " + "word " * 800
        )
        chain.answer("ok", tokens=11_000 + number * 1_000)
    decided = plan_trim_of_file(config_home, write_project_session(config_home, chain))
    saved = decided.savings
    for rows in (saved.savings_by_rule, saved.savings_by_tool):
        assert sum(row.piece_count for row in rows) == 4
        assert abs(sum(row.tokens_before - row.tokens_after for row in rows) - saved.tokens) <= len(
            rows
        )
    assert decided.context_before.tokens - decided.context_after.tokens == saved.tokens
    receipt = write_child(decided, config_home.where)
    assert (receipt.tools_trimmed, receipt.chars_saved) == (4, saved.saved_character_count)
    assert (
        json.loads(Path(receipt.file).read_bytes().split(b"\n")[0])["trim_metadata"]["stats"][
            "trimmed_tokens"
        ]
        == receipt.tokens_after
    )


COMMAND_OUTPUT = "output of a command " * 400


def write_session_with_token_counts(home: ConfigHome) -> Path:
    """Write ten turns of 2,000 tokens each, with four characters per token."""
    chain, tokens = Chain(), 20_000
    for turn in range(10):
        chain.ask(f"question {turn}").answer(
            [builders.call(f"t{turn}", "Bash", command="ls")], tokens=tokens
        )
        chain.result(f"t{turn}", COMMAND_OUTPUT)
        tokens += len(COMMAND_OUTPUT) // 4
        chain.answer("done", tokens=tokens)
    return Path(builders.write_session(home.project(), builders.SESSION, chain.rows))


def test_a_trimmed_child_states_its_size(config_home: ConfigHome) -> None:
    """A trimmed child's file, its receipt and a second trim state the same size."""
    path = write_session_with_token_counts(config_home)
    decided = plan.plan_trim(
        plan.scan_session(session_file(str(path))), config_home.where, Options()
    )
    made = write_child(decided, config_home.where)
    told = read_size_stated_in_first_line(made.file)
    assert told is not None
    assert (told.tokens, told.original_tokens) == (made.tokens_after, made.tokens_before)
    assert measure_context_from_tail(made.file).tokens == made.tokens_after
    again = plan.scan_session(session_file(made.file))
    assert again.context.tokens == made.tokens_after
    assert round(again.scale.characters_per_token, 1) == round(told.characters_per_token, 1) == 4.0


def test_an_untrimmed_child_states_its_former_size(config_home: ConfigHome) -> None:
    """The size of an untrimmed child is the size before the trim."""
    path = write_session_with_token_counts(config_home)
    decided = plan.plan_trim(
        plan.scan_session(session_file(str(path))), config_home.where, Options()
    )
    child = write_child(decided, config_home.where)
    whole = write_child(
        untrim.plan_untrim(scan_trimmed_session(session_file(child.file)), config_home.where),
        config_home.where,
    )
    assert (whole.tokens_before, whole.tokens_after) == (child.tokens_after, child.tokens_before)
    assert measure_context_from_tail(whole.file).tokens == child.tokens_before


def test_the_last_token_count_is_used_even_if_it_is_lower(config_home: ConfigHome) -> None:
    """If the last token count is lower than the earlier counts, the last count is used."""
    path = write_session_with_token_counts(config_home)
    rows = [builders.user("go on", uuid="u", parent="c39", ts=50)]
    rows.append(builders.assistant("yes", uuid="v", parent="u", ts=51, tokens=25_000))
    with path.open("ab") as stream:
        stream.write(builders.session_bytes(rows))
    assert plan.scan_session(session_file(str(path))).context.tokens == 25_000


def test_a_trim_reports_a_tool_filter_without_a_match(config_home: ConfigHome) -> None:
    """A trim reports a tool filter that matches no tool in the session."""
    scanned = plan.scan_session(session_file(str(write_session_with_token_counts(config_home))))
    decision = decide_trim(scanned, Options(tools=("bsh", "bash")), config_home.where)
    assert decision.unknown_tools == ("bsh",)
