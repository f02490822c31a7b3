"""Tests that an untrimmed child has the original contents byte for byte."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive import untrim
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import make_planned_receipt, write_child
from resume_hooks.derive.originals import CONTENT_FIELD_NAMES
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import PLACEHOLDER_LEGEND, format_totals
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.trim_in_place import trim_in_place
from resume_hooks.errors import (
    CheckFailed,
    NotATranscript,
    NothingToTrim,
    SessionNotFound,
    UsageError,
)
from resume_hooks.sessions.lineage_block import LINEAGE_START_MARKER
from resume_hooks.sessions.session_files import session_file
from resume_hooks.storage.atomic import create_session
from resume_hooks.transcripts import invariants
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import get_message, parse_record
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    attachment,
    call,
    custom_title,
    result,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.corpus import RealSession

AGGRESSIVE_OPTIONS = Options(threshold=80, keep_recent=0, assistant=10_000, min_savings=0)
DEFAULT_OPTIONS = Options(min_savings=0)
LONG_TEXT = "many words, " * 100
OLD_TIME = 1_000_000_000.0

LARGE_SESSION_BYTES = 1_200_000
"""Only real sessions with more bytes than this are also tested with the aggressive options. There
are about 15 such sessions."""


def make_bulky_session() -> list[Record]:
    """Return a session with an output, an image, an input, thinking, an attachment and a paste."""
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "A" * 9_000},
    }
    thought = {"type": "thinking", "thinking": LONG_TEXT, "signature": "signed"}
    return [
        user(f"read it: {LONG_TEXT * 3}", uuid="u0"),
        assistant([call("c1", file_path="/x.py")], uuid="a2", parent="u0", ts=2, tokens=20_000),
        tool_result(
            "c1",
            LONG_TEXT,
            uuid="u3",
            parent="a2",
            ts=3,
            toolUseResult={"file": {"content": LONG_TEXT}},
        ),
        assistant(
            [call("c2", "Write", content=LONG_TEXT, file_path="/y.py")],
            uuid="a4",
            parent="u3",
            ts=4,
            tokens=22_000,
        ),
        user(
            [result("c2", [{"type": "text", "text": "ok"}, image])],
            uuid="u5",
            parent="a4",
            ts=5,
            toolUseResult="x",
        ),
        attachment(LONG_TEXT, uuid="t6", parent="u5", ts=6),
        assistant([thought], uuid="a1", parent="t6", ts=7, message_id="m1", tokens=26_000),
        assistant(LONG_TEXT, uuid="a7", parent="a1", ts=7.5, message_id="m1", tokens=26_000),
        user("and now?", uuid="u8", parent="a7", ts=8),
        assistant("done", uuid="a9", parent="u8", ts=9, tokens=29_000),
        custom_title("Fix the parser"),
    ]


@pytest.fixture
def parent(config_home: ConfigHome) -> str:
    """Write the bulky session with an old modification time."""
    path = write_session(config_home.project(), SESSION, make_bulky_session())
    os.utime(path, (OLD_TIME, OLD_TIME))
    return path


def write_trimmed_child(path: str, home: ConfigHome, options: Options = AGGRESSIVE_OPTIONS) -> str:
    """Write a trimmed child of a session and return its file."""
    decided = plan.plan_trim(plan.scan_session(session_file(path)), home.where, options)
    return write_child(decided, home.where).file


def write_untrimmed_child(
    path: str, home: ConfigHome, line_numbers: list[int] | None = None, **untrim_options: Any
) -> Receipt:
    """Write an untrimmed child of a session and return its receipt."""
    decided = untrim.plan_untrim(
        scan_trimmed_session(session_file(path)), home.where, line_numbers, **untrim_options
    )
    return write_child(decided, home.where)


def read_live_contents(path: str) -> dict[str, dict[str, object]]:
    """Return the content fields of each live record, such as ``toolUseResult``, by the record's uuid."""
    transcript = scan_transcript(path)
    found = {}
    for node in transcript.chain:
        record = transcript.read_record(node)
        rest = {key: record[key] for key in CONTENT_FIELD_NAMES[1:] if key in record}
        found[node.uuid] = {"content": get_message(record).get("content"), **rest}
    return found


def list_trimmed_line_numbers(path: str) -> list[int]:
    """Return the line numbers of a file's trimmed records."""
    return [
        n
        for n, line in enumerate(Path(path).read_bytes().split(b"\n"))
        if (parse_record(line) or {}).get("truncated")
    ]


def test_untrim_restores_every_kind_of_content(config_home: ConfigHome, parent: str) -> None:
    """An untrimmed child has the same contents as the session that was trimmed."""
    child = write_trimmed_child(parent, config_home)
    whole, cut = read_live_contents(parent), read_live_contents(child)
    assert {uuid for uuid in whole if whole[uuid] != cut[uuid]} == {
        "u0",
        "a1",
        "u3",
        "a4",
        "u5",
        "t6",
        "a7",
    }
    receipt = write_untrimmed_child(child, config_home)
    back = read_live_contents(receipt.file)
    assert {uuid: back[uuid] for uuid in whole} == whole
    assert list_trimmed_line_numbers(receipt.file) == []
    assert [
        node.context_tokens for node in scan_transcript(receipt.file).chain if node.context_tokens
    ] == []
    assert all(check.ok for check in receipt.checks)
    assert {check.name for check in receipt.checks} >= {
        "restored contents equal the originals",
        "no tool call was lost or added",
        "thinking is unchanged or removed",
    }


def test_trim_and_untrim_count_the_same_records(config_home: ConfigHome, parent: str) -> None:
    """A trim and an untrim report the same number of records.

    A record with two trimmed pieces is counted once.
    """
    edit = assistant(
        [call("c2", "Edit", old_string=LONG_TEXT, new_string=LONG_TEXT * 2)],
        uuid="a4",
        parent="u3",
        ts=4,
    )
    write_session(
        os.path.dirname(parent),
        SESSION,
        [edit if row.get("uuid") == "a4" else row for row in make_bulky_session()],
    )
    decided = plan.plan_trim(
        plan.scan_session(session_file(parent)), config_home.where, AGGRESSIVE_OPTIONS
    )
    assert len(decided.choices) == 8
    assert format_totals(decided)[-1].endswith(" in 7 records")
    back = untrim.plan_untrim(
        scan_trimmed_session(session_file(write_child(decided, config_home.where).file)),
        config_home.where,
    )
    assert back.facts == ["7 of 7 trimmed records were restored"]


def make_session_with_thinking() -> list[Record]:
    """Return a session with eight outputs and a little thinking.

    Each output has 12,000 characters and counts as 4,800 tokens.
    """
    rows = [user("begin", uuid="u"), assistant("yes", uuid="a", parent="u", ts=1, tokens=30_000)]
    for number in range(8):
        thought = {"type": "thinking", "thinking": "hm", "signature": "signed"}
        at, count = 10 * number, 30_000 + 4_800 * number
        rows += [
            assistant([thought], uuid=f"t{number}", parent=rows[-1]["uuid"], ts=at + 2, message_id=f"m{number}"),
            assistant([call(f"c{number}", file_path="/x")], uuid=f"c{number}", parent=f"t{number}", ts=at + 3,
                      message_id=f"m{number}", tokens=count),
            tool_result(f"c{number}", f"{number} and more" * 1_000, uuid=f"r{number}", parent=f"c{number}", ts=at + 4),
            user("go on", uuid=f"p{number}", parent=f"r{number}", ts=at + 5),
        ]  # fmt: skip
    thought = {"type": "thinking", "thinking": "hm", "signature": "signed"}
    rows.append(assistant([thought], uuid="t", parent=rows[-1]["uuid"], ts=98, message_id="z"))
    return [*rows, assistant("done", uuid="z", parent="t", ts=99, message_id="z", tokens=68_400)]


def test_trimming_an_untrimmed_child_saves_as_much_as_the_first_trim(
    config_home: ConfigHome,
) -> None:
    """Trimming an untrimmed child saves as many tokens as the first trim.

    Neither the trimmed nor the untrimmed child has token counts of its own.
    """
    path = write_session(config_home.project(), SESSION, make_session_with_thinking())
    first = plan.plan_trim(
        plan.scan_session(session_file(path)), config_home.where, DEFAULT_OPTIONS
    )
    back = write_untrimmed_child(
        write_trimmed_child(path, config_home, DEFAULT_OPTIONS), config_home
    ).file
    again = plan.plan_trim(
        plan.scan_session(session_file(back)), config_home.where, DEFAULT_OPTIONS
    )
    assert again.context_before.tokens == first.context_before.tokens
    assert again.savings.tokens == pytest.approx(first.savings.tokens, rel=0.02)


def test_an_untrimmed_child_names_its_parent(config_home: ConfigHome, parent: str) -> None:
    """An untrimmed child names the trimmed session as its parent. The parent's file is unchanged.

    The child has its own kind, title and number.
    """
    child = write_trimmed_child(parent, config_home)
    before = Path(child).read_bytes()
    receipt = write_untrimmed_child(child, config_home)
    named = read_parent(receipt.file)
    assert named is not None
    assert (named.file_path, named.kind, named.derivation_type) == (child, "untrim", "continued")
    assert (receipt.title, receipt.kind, receipt.written) == (
        "Fix the parser · untrim",
        "untrim",
        True,
    )
    assert receipt.tokens_after > receipt.tokens_before > 0
    assert Path(child).read_bytes() == before
    assert write_untrimmed_child(child, config_home).title == "Fix the parser · untrim 2"


def read_opening(path: str) -> str:
    """Return the opening of a session, which begins with the session's lineage."""
    transcript = scan_transcript(path)
    opening = get_message(transcript.read_record(transcript.chain[0]))["content"]
    assert opening.startswith(LINEAGE_START_MARKER)
    return str(opening)


def test_untrim_restores_only_named_records(config_home: ConfigHome, parent: str) -> None:
    """If records are named, only these are restored. The others can be restored later."""
    child = write_trimmed_child(parent, config_home)
    numbers = list_trimmed_line_numbers(child)
    receipt = write_untrimmed_child(child, config_home, numbers[:2])
    whole, cut, back = (
        read_live_contents(parent),
        read_live_contents(child),
        read_live_contents(receipt.file),
    )
    uuids = [node.uuid for node in scan_transcript(child).nodes if node.line_number in numbers]
    assert [back[uuid] == whole[uuid] for uuid in uuids] == [
        True,
        True,
        *[False] * (len(uuids) - 2),
    ]
    assert [back[uuid] == cut[uuid] for uuid in uuids] == [False, False, *[True] * (len(uuids) - 2)]
    assert read_opening(receipt.file).count(PLACEHOLDER_LEGEND) == 1
    rest = write_untrimmed_child(receipt.file, config_home)
    assert PLACEHOLDER_LEGEND not in read_opening(rest.file)
    assert {
        uuid: found for uuid, found in read_live_contents(rest.file).items() if uuid in whole
    } == whole


def test_untrim_refuses_a_record_that_is_not_trimmed(config_home: ConfigHome, parent: str) -> None:
    """Naming a record that is not trimmed raises an error that lists the trimmed records."""
    child = write_trimmed_child(parent, config_home)
    with pytest.raises(UsageError) as caught:
        write_untrimmed_child(child, config_home, [list_trimmed_line_numbers(child)[0], 0])
    assert caught.value.message == "Record 0 of this session's conversation has not been trimmed"
    assert (
        caught.value.remedy
        == f"The trimmed records are: {', '.join(map(str, list_trimmed_line_numbers(child)))}."
    )
    with pytest.raises(UsageError, match="has not been trimmed") as none:
        write_untrimmed_child(parent, config_home, [3])
    assert none.value.remedy == "No record of this session is trimmed."


def test_an_untrim_without_trimmed_records_has_no_child(
    config_home: ConfigHome, parent: str
) -> None:
    """If nothing is trimmed, the receipt names no session and both sizes are equal."""
    decided = untrim.plan_untrim(scan_trimmed_session(session_file(parent)), config_home.where)
    shown = make_planned_receipt(decided)
    assert (decided.restored_records, shown.session_id, shown.file, shown.written) == (
        (),
        "",
        "",
        False,
    )
    assert shown.tokens_before == shown.tokens_after


def test_untrim_restores_contents_of_several_trims(config_home: ConfigHome, parent: str) -> None:
    """After several trims, each original is taken from the session that contains it.

    If a session in the middle of the lineage was deleted, only the originals in that session are
    missing.
    """
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    first = write_trimmed_child(
        parent, config_home, Options(keep_recent=0, only=("results",), min_savings=0)
    )
    second = write_trimmed_child(
        first,
        config_home,
        Options(keep_recent=0, only=("media", "results"), threshold=80, min_savings=0),
    )
    third = write_trimmed_child(second, config_home)
    whole = read_live_contents(parent)
    receipt = write_untrimmed_child(third, config_home)
    assert {
        uuid: found for uuid, found in read_live_contents(receipt.file).items() if uuid in whole
    } == whole
    os.unlink(second)
    reading = scan_trimmed_session(session_file(third))
    decided = untrim.plan_untrim(reading, config_home.where)
    originals = [
        row.original for row in decided.restored_records if isinstance(row, untrim.Restoration)
    ]
    assert {original.session_id for original in originals} == {SESSION, Path(first).stem}
    lost = {row.line_number for row in decided.missing_originals}
    assert lost == {
        node.line_number
        for node in reading.trimmed_nodes
        if node.uuid in {"u0", "a1", "a4", "t6", "a7"}
    }


def test_untrim_reports_lost_originals(config_home: ConfigHome, parent: str) -> None:
    """A lost original is reported and its record stays trimmed.

    With ``strict``, or if all originals are lost, an error is raised and no child is written.
    """
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    child = write_trimmed_child(parent, config_home)
    records = [
        line for line in Path(parent).read_bytes().split(b"\n") if b'"uuid":"u3"' not in line
    ]
    Path(parent).write_bytes(b"\n".join(records))
    there = sorted(os.listdir(os.path.dirname(child)))
    with pytest.raises(
        SessionNotFound, match=r"1 of 7 records can't be restored; record \d+: its original is gone"
    ):
        write_untrimmed_child(child, config_home, strict=True)
    assert sorted(os.listdir(os.path.dirname(child))) == there
    receipt = write_untrimmed_child(child, config_home)
    (warning,) = receipt.warnings
    assert warning.endswith(f"stays trimmed: its original is gone: it was line 2 of {parent}.")
    assert read_live_contents(receipt.file)["u3"] == read_live_contents(child)["u3"]
    assert PLACEHOLDER_LEGEND in read_opening(receipt.file)
    os.unlink(parent)
    with pytest.raises(SessionNotFound, match="7 of 7 records can't be restored"):
        write_untrimmed_child(child, config_home)


def test_untrim_refuses_an_original_without_the_call(config_home: ConfigHome, parent: str) -> None:
    """A record is not accepted as an original if it has the same uuid but lacks the trimmed call."""
    child = write_trimmed_child(parent, config_home)
    changed = [
        assistant(LONG_TEXT, uuid="a4", parent="u3", ts=4) if r.get("uuid") == "a4" else r
        for r in make_bulky_session()
    ]
    write_session(os.path.dirname(parent), SESSION, changed)
    decided = untrim.plan_untrim(scan_trimmed_session(session_file(child)), config_home.where)
    assert [row.reason for row in decided.missing_originals] == [
        f"{SESSION}:3 does not contain the original"
    ]


def test_only_the_first_ten_warnings_are_listed(config_home: ConfigHome) -> None:
    """If there are more than ten warnings, the first ten are listed and the others are counted."""
    records: list[Record] = [user("go", uuid="u")]
    for number in range(14):
        above = records[-1]["uuid"]
        records.append(tool_use(f"c{number}", uuid=f"a{number}", parent=above, ts=2 * number + 1))
        records.append(
            tool_result(
                f"c{number}",
                f"{number} {LONG_TEXT}",
                uuid=f"r{number}",
                parent=f"a{number}",
                ts=2 * number + 2,
            )
        )
    parent = write_session(config_home.project(), SESSION, records)
    child = write_trimmed_child(parent, config_home)
    write_session(config_home.project(), SESSION, records[:4])
    receipt = write_untrimmed_child(child, config_home)
    assert len(receipt.warnings) == untrim.MAX_LISTED_RECORDS + 1
    assert receipt.warnings[-1] == "3 more records stay trimmed."


def test_untrim_restores_from_the_backups_of_trims_in_place(
    config_home: ConfigHome, parent: str
) -> None:
    """After several trims in place, all originals are restored from the backups."""
    whole = read_live_contents(parent)
    for options in (Options(keep_recent=0, only=("results",), min_savings=0), AGGRESSIVE_OPTIONS):
        trim_in_place(session_file(parent), options, Caller(config_home.where), force=True)
    assert read_live_contents(parent) != whole
    receipt = write_untrimmed_child(parent, config_home, strict=True)
    assert {
        uuid: found for uuid, found in read_live_contents(receipt.file).items() if uuid in whole
    } == whole


def test_untrim_finds_the_backup_of_a_trimmed_parent(config_home: ConfigHome, parent: str) -> None:
    """If the parent is trimmed in place after the child was made, an untrim uses the parent's backup."""
    whole, child = read_live_contents(parent), write_trimmed_child(parent, config_home)
    trim_in_place(session_file(parent), AGGRESSIVE_OPTIONS, Caller(config_home.where), force=True)
    receipt = write_untrimmed_child(child, config_home, strict=True)
    assert {
        uuid: found for uuid, found in read_live_contents(receipt.file).items() if uuid in whole
    } == whole


def test_untrim_copies_messages_since_the_trim(config_home: ConfigHome, parent: str) -> None:
    """An untrim also copies the messages after the trim. They follow the restored contents."""
    child = write_trimmed_child(parent, config_home)
    more = [
        user("and then?", uuid="n1", parent="a9", ts=90),
        assistant("this", uuid="n2", parent="n1", ts=91, tokens=9_000),
    ]
    with open(child, "ab") as stream:
        stream.writelines(line + b"\n" for line in map(encode_record, more))
    receipt = write_untrimmed_child(child, config_home)
    assert [node.uuid for node in scan_transcript(receipt.file).chain][-2:] == ["n1", "n2"]
    assert receipt.tokens_before == 9_000


def test_untrim_omits_blocks_that_cannot_be_sent(config_home: ConfigHome) -> None:
    """Calls without a result and thinking without a signature are not restored."""
    blocks = [
        {"type": "thinking", "thinking": "unsigned"},
        call("c0"),
        call("c1", "Write", content=LONG_TEXT),
    ]
    records = [
        user("go", uuid="u0"),
        assistant(blocks, uuid="a1", parent="u0", ts=1),
        tool_result("c1", LONG_TEXT, uuid="u2", parent="a1", ts=2),
        user("and now?", uuid="u3", parent="u2", ts=3),
        assistant("done", uuid="a4", parent="u3", ts=4),
    ]
    parent = write_session(config_home.project(), SESSION, records)
    child = write_trimmed_child(
        parent, config_home, Options(keep_recent=0, only=("results",), min_savings=0)
    )
    receipt = write_untrimmed_child(child, config_home, strict=True)
    assert read_live_contents(receipt.file)["a1"]["content"] == blocks[2:]
    assert read_live_contents(receipt.file)["u2"] == read_live_contents(parent)["u2"]


def test_a_child_that_differs_from_the_originals_is_not_kept(
    config_home: ConfigHome, parent: str
) -> None:
    """If the child differs from the originals, the check fails and the child is removed."""
    child = write_trimmed_child(parent, config_home)
    decided = untrim.plan_untrim(scan_trimmed_session(session_file(child)), config_home.where)
    spoiled = (line.replace(b"many words", b"mani words") for line in decided.body.lines())
    with pytest.raises(CheckFailed, match="restored contents equal the originals"):
        create_session(
            decided.draft.path,
            spoiled,
            lambda path: invariants.require_all_checks(decided.run_checks(path), path),
        )
    assert not os.path.exists(decided.draft.path)


@pytest.mark.parametrize("options", [DEFAULT_OPTIONS, AGGRESSIVE_OPTIONS], ids=["usual", "hard"])
def test_every_real_session_is_restored(
    config_home: ConfigHome, real_session: RealSession, options: Options
) -> None:
    """Trimming and untrimming a real session restores exactly the messages of its live conversation."""
    if options is AGGRESSIVE_OPTIONS and real_session.size <= LARGE_SESSION_BYTES:
        return
    parent = str(real_session.copy_to(config_home.project()))
    try:
        decided = plan.plan_trim(
            plan.scan_session(session_file(parent)), config_home.where, options
        )
    except (NothingToTrim, NotATranscript):
        return
    if not decided.choices:
        return
    child = write_child(decided, config_home.where).file
    receipt = write_untrimmed_child(child, config_home, strict=True)
    whole, cut, back = (
        read_live_contents(parent),
        read_live_contents(child),
        read_live_contents(receipt.file),
    )
    assert back.keys() == cut.keys()
    assert {uuid: back[uuid] for uuid in whole if uuid in cut} == {
        uuid: whole[uuid] for uuid in whole if uuid in cut
    }
