"""Tests of the benchmark that compares ways to continue a session.

It counts the labelled items and the planted facts that each way keeps.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from benchmarks.going_on.generations import FactCounts, count_facts_in
from benchmarks.going_on.judge import (
    Row,
    command_core,
    split_opening_rows,
    split_prose_rows,
    text_contains_item,
)
from benchmarks.going_on.measure import (
    COLUMN_HEADINGS,
    IN,
    NEAR,
    OUT,
    WayTotals,
    format_row,
    format_tables,
    locate_item_after_way,
    measure_own_sessions,
)
from benchmarks.going_on.planted import (
    CHANGING_FACT_COUNT,
    LATE_FACT_COUNT,
    WORDING_BY_FACT_KIND,
    Fact,
    Statement,
    make_planted_facts,
)
from benchmarks.going_on.truth import SAMPLE_LABEL_SET, Item, find_transcript, read_labelled_items
from benchmarks.going_on.ways import (
    MODEL_WAYS,
    Remainder,
    copy_session,
    run_ways_at_compaction,
    run_ways_on_session,
    select_end_of_talk,
    select_prompts_and_end,
)
from resume_hooks.transcripts import records
from tests.builders import SESSION, assistant, boundary, conversation, session_bytes, summary, user

CHANGED_FILE_ITEM = Item("s", "file", 7, "src/pool.py", is_in_summary=None)
UNCHANGED_FILE_ITEM = Item("s", "file", 8, "src/lock.py", is_in_summary=None)
DECISION_ITEM = Item("s", "decision", 9, "take the lock   first", is_in_summary=None)
COMMAND_ITEM = Item("s", "command", 9, "cd /work && make test 2>&1 | tail -5", is_in_summary=None)
EXAMPLE_OPENING = """\
digest of what was done before, quoted from its records (not instructions)
last request, USER :3
  - see lib/pool.py
files changed:
  - src/pool.py (:7)
files read, not changed:
  - src/lock.py
commands to run again:
  - make test (:9)"""


def test_rows_of_an_opening_have_the_name_of_their_section() -> None:
    """Each row of a list in an opening has the name of its section. Rows of messages have none."""
    assert split_opening_rows(EXAMPLE_OPENING) == [
        Row("", "- see lib/pool.py"),
        Row("files changed:", "src/pool.py (:7)"),
        Row("files read, not changed:", "src/lock.py"),
        Row("commands to run again:", "make test (:9)"),
    ]


def test_an_item_is_found_verbatim_or_in_a_row() -> None:
    """An item is found if its words are in the text, whatever the white space is.

    A changed file is also found by its name, in the list of changed files or in prose. A command is
    also found in the list of commands, without its ``cd`` and its output filter.
    """
    assert text_contains_item(DECISION_ITEM, "we take the lock first, then", ())
    assert not text_contains_item(DECISION_ITEM, "the lock is taken first", ())
    assert text_contains_item(CHANGED_FILE_ITEM, "", split_opening_rows(EXAMPLE_OPENING))
    assert text_contains_item(CHANGED_FILE_ITEM, "", split_prose_rows("I changed pool.py"))
    assert not text_contains_item(UNCHANGED_FILE_ITEM, "", split_opening_rows(EXAMPLE_OPENING))
    assert text_contains_item(COMMAND_ITEM, "", split_opening_rows(EXAMPLE_OPENING))
    assert command_core(r"eval $'cat <<\'E\'\nx\\y\nE'") == r"cat <<'E' x\y E'"


def test_an_item_named_by_a_placeholder_is_near() -> None:
    """An item is one read away if a placeholder names its record, or if the whole digest contains it."""
    assert (
        locate_item_after_way(
            CHANGED_FILE_ITEM, Remainder(1, rows=[Row("files changed:", "src/pool.py")])
        )
        == IN
    )
    assert (
        locate_item_after_way(CHANGED_FILE_ITEM, Remainder(1, named_record_numbers=frozenset({7})))
        == NEAR
    )
    assert (
        locate_item_after_way(CHANGED_FILE_ITEM, Remainder(1, named_record_numbers=frozenset({8})))
        == OUT
    )
    assert (
        locate_item_after_way(
            CHANGED_FILE_ITEM,
            Remainder(1, readable_rows=[Row("files changed:", "src/pool.py")]),
        )
        == NEAR
    )


def test_a_row_shows_the_median_and_the_shares_by_kind() -> None:
    """A row of the table has the median of the tokens and the percentages of found items by kind.

    A cell is empty if nothing was measured or if no item of the kind is labelled.
    """
    sums = WayTotals()
    sums.add_result(
        Remainder(50, "take the lock first", named_record_numbers=frozenset({7})),
        [CHANGED_FILE_ITEM, DECISION_ITEM],
    )
    sums.add_result(Remainder(70), [])
    sums.add_result(None, [CHANGED_FILE_ITEM])
    assert format_row("trim", sums) == "| trim | 60 | 100 |  |  |  | 0 | 50 | 100 |"
    assert format_row("rollover", WayTotals()).count("|") == len(COLUMN_HEADINGS) + 1


def test_an_excerpt_ends_with_the_end_of_the_talk() -> None:
    """An excerpt ends with the end of the talk.

    ``select_prompts_and_end`` fills half of the space with prompts and the other half with this end.
    """
    parsed = [
        record
        for line in session_bytes(conversation(400)).split(b"\n")
        if (record := records.parse_record(line))
    ]
    last, first = select_end_of_talk(parsed, 900), select_prompts_and_end(parsed, 900)
    assert len(last) == 3_600
    assert last.endswith(records.join_text_blocks(parsed[-1]))
    assert first.startswith("prompt 0\n")
    assert first.endswith(last[-1_500:])
    assert len(first) == 3_601


def test_a_handoff_of_the_sample_has_every_labelled_item() -> None:
    """A handoff of the published session contains every labelled item.

    For a session without labels, no percentages are printed.
    """
    handoff = next(
        line for line in format_tables(SAMPLE_LABEL_SET) if line.startswith("| handoff, 12k ")
    )
    assert handoff.count("| 100 ") == 7
    assert "100" not in next(
        line
        for line in measure_own_sessions([find_transcript(SAMPLE_LABEL_SET)])
        if line.startswith("| handoff, 12k ")
    )


def test_a_stored_summary_of_a_model_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored summary that a model wrote is measured. If none is stored, the model's way has no result."""
    (tmp_path / MODEL_WAYS[0]).mkdir()
    (tmp_path / MODEL_WAYS[0] / f"{SESSION}.md").write_text("The fix is in `src/nowhere.py`.\n")
    for folder, is_there in ((tmp_path, True), (tmp_path / "none", False)):
        monkeypatch.setenv("BENCH_SUMMARIES", str(folder))
        with copy_session(find_transcript(SAMPLE_LABEL_SET)) as path:
            left = next(
                went.remainder
                for went in run_ways_on_session(path)
                if went.way_name == MODEL_WAYS[0]
            )
        assert bool(left and "src/nowhere.py" in left.text) is is_there


def test_only_records_before_a_compaction_are_measured(tmp_path: Path) -> None:
    """Each way is measured on the records before a compaction. Later records are left out."""
    before = [
        user("never touch the vendored folder", uuid="u1"),
        assistant("The port is 6543, as the tests show.", uuid="a1", parent="u1", ts=1),
    ]
    cut = boundary(uuid="b", ts=2, before="a1")
    after = [
        summary("The user set rules.", uuid="s", parent="b", ts=3),
        user("use zebras", uuid="u2", parent="s", ts=4),
    ]
    source = tmp_path / f"{SESSION}.jsonl"
    source.write_bytes(session_bytes([*before, cut, *after]))
    with copy_session(source) as path:
        ways = {way: left for way, left in run_ways_at_compaction(path) if left is not None}
    assert not any("zebras" in left.text for left in ways.values())
    assert "The user set rules." in ways["the client's summary"].text
    ours = ways["`config compaction 12k`"]
    assert "never touch the vendored folder" in ours.text


def test_planted_facts_are_distinct() -> None:
    """There are twenty planted facts of each kind, and none of them is contained in another."""
    facts = make_planted_facts(random.Random(1))
    for kind in WORDING_BY_FACT_KIND:
        of_kind = [fact for fact in facts if fact.kind == kind]
        assert len(of_kind) == 20
        assert sum(bool(fact.old_values) for fact in of_kind) == CHANGING_FACT_COUNT
        assert sum(fact.statements[0].generation > 0 for fact in of_kind) == LATE_FACT_COUNT
    for fact in facts:
        assert not any(fact.subject in other.subject for other in facts if other is not fact)
        assert not any(fact.current_value in old for old in fact.old_values)


def test_a_planted_fact_is_kept_if_a_sentence_states_it() -> None:
    """A planted fact is kept if one sentence states its subject and its value.

    If a message states an old value without a mark that it is superseded, the value counts as
    unmarked.
    """
    said = [Statement("The port is 1.", "1", 0), Statement("The port is 2.", "2", 1)]
    fact = Fact("fact", "port", said)
    marked = 'USER :1\n  The port is 1.\n  [superseded at :5: "The port is 1."]\nUSER :5\n  The port is 2.'
    assert count_facts_in(marked, [fact]) == FactCounts(1, 1, 1, 0)
    assert count_facts_in(marked.replace("[superseded at", "[see"), [fact]) == FactCounts(
        1, 1, 1, 1
    )
    assert count_facts_in("USER :5\n  The port. It is 2.", [fact]) == FactCounts(1, 0, 1, 0)


def test_stronger_trims_and_smaller_handoffs_do_not_keep_more_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stronger trim does not keep more tokens, and a smaller handoff does not keep more items.

    The handoffs have 900, 12,000 and 24,000 tokens. A fork keeps as many items as the session itself.
    """
    monkeypatch.delenv("BENCH_PEER", raising=False)
    found = read_labelled_items("tune")
    source = find_transcript(found[0].session_path)
    before = dict(os.environ)
    with copy_session(source) as path:
        ways = {way: left for way, left in run_ways_on_session(path) if left is not None}
    assert dict(os.environ) == before
    assert (
        ways["go on"].request_tokens
        >= ways["trim"].request_tokens
        >= ways["trim, maximum"].request_tokens
    )
    labelled = [item for item in found if item.session_path == found[0].session_path]
    kept = {
        way: sum(locate_item_after_way(item, left) == IN for item in labelled)
        for way, left in ways.items()
    }
    assert kept["fork"] == kept["go on"] >= kept["trim"]
    assert kept["handoff, 24k"] >= kept["handoff, 12k"] >= kept["handoff, 900"]
