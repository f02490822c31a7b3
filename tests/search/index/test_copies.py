"""Tests of records in several sessions: they are one hit, in the session where they were first said.

The hit names the others.
"""

from __future__ import annotations

from pathlib import Path

from resume_hooks.derive import agents, fork
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan as trimming
from resume_hooks.derive.trim.options import Options
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from resume_hooks.sessions import locate
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    call,
    result,
    session_bytes,
    session_id,
    user,
)
from tests.search.index.probe import (
    answer_with_id,
    append_records,
    build_new_index,
    prompt_with_id,
    put_session,
    read_index,
    uuid_of_text,
)

NAME = f"{SESSION}.jsonl"
FORK, GRANDCHILD = session_id(2), session_id(3)
BULK = "many words, " * 100

Found = tuple[str, tuple[str, ...]]
"""A hit: where it is, and the sessions that hold it, its own first."""


def hits_for_word(home: ConfigHome, word: str) -> list[Found]:
    """Return the hits for one word."""
    return [(hit.reference, hit.sessions) for hit in search_index([word], Scope(), home.where).hits]


def sdk_fork_record(record: Record, source: str, target: str) -> Record:
    """Return a record in the SDK's fork: a new id, with the old id next to it."""
    mark = {"sessionId": source, "messageUuid": record["uuid"]}
    return {
        **record,
        "uuid": uuid_of_text(record["uuid"] + target),
        "sessionId": target,
        "forkedFrom": mark,
    }


def test_a_fork_of_the_client_is_one_hit(config_home: ConfigHome) -> None:
    """The other file has the same ids. A hit is in the parent, and new records of the fork are in the fork."""
    shared = [prompt_with_id("alpha"), answer_with_id("beta")]
    put_session(config_home, *shared)
    fork_of = [*({**record, "sessionId": FORK} for record in shared), prompt_with_id("gamma")]
    put_session(config_home, *fork_of, name=FORK, old=False)
    for word, line in (("alpha", 0), ("beta", 1)):
        assert hits_for_word(config_home, word) == [(f"{SESSION}:{line}", (SESSION, FORK))]
    assert hits_for_word(config_home, "gamma") == [(f"{FORK}:2", (FORK,))]


def test_a_fork_of_an_sdk_fork_is_one_hit(config_home: ConfigHome) -> None:
    """New ids name the old ones. The original comes first, whatever the files' times are."""
    shared = [prompt_with_id("alpha"), answer_with_id("beta")]
    once = [sdk_fork_record(record, SESSION, FORK) for record in shared]
    twice = [sdk_fork_record(record, FORK, GRANDCHILD) for record in once]
    put_session(config_home, *twice, prompt_with_id("delta"), name=GRANDCHILD)
    put_session(config_home, *once, prompt_with_id("gamma"), name=FORK, old=False)
    put_session(config_home, *shared, old=False)
    ((reference, sessions),) = hits_for_word(config_home, "alpha")
    assert (reference, sessions[0], set(sessions)) == (
        f"{SESSION}:0",
        SESSION,
        {SESSION, FORK, GRANDCHILD},
    )


def test_our_fork_of_an_sdk_fork_is_one_hit(config_home: ConfigHome) -> None:
    """It keeps the ids and names its parent, which comes first even if it was written to later."""
    shared = [prompt_with_id("alpha"), answer_with_id("beta", parent=uuid_of_text("alpha"), ts=1)]
    once = [sdk_fork_record(record, SESSION, FORK) for record in shared]
    once[1]["parentUuid"] = once[0]["uuid"]
    own = put_session(config_home, *shared)
    theirs = put_session(config_home, *once, name=FORK)
    again, made = (
        Path(
            write_child(
                fork.plan_fork(locate.session_file(str(path)), config_home.where), config_home.where
            ).file
        )
        for path in (own, theirs)
    )
    append_records(own, prompt_with_id("gamma"))
    ((reference, sessions),) = hits_for_word(config_home, "alpha")
    assert (reference, set(sessions)) == (f"{SESSION}:0", {SESSION, FORK, again.stem, made.stem})


def write_large_parent(home: ConfigHome) -> Path:
    """Write a parent with content to trim, under real ids."""
    records: list[Record] = [prompt_with_id("alpha question")]
    for number in range(12):
        records += [
            answer_with_id(
                [call(f"c{number}", file_path=f"/x{number}.py")],
                number=f"a{number}",
                tokens=20_000 + number,
            ),
            user([result(f"c{number}", f"body{number} {BULK}")], uuid=uuid_of_text(f"r{number}")),
        ]
    writes = [
        {"type": "text", "text": "epsilon"},
        call("w", "Write", file_path="/x.py", content=f"zeta {BULK}"),
    ]
    records += [
        answer_with_id(writes, number="w", tokens=29_000),
        user([result("w")], uuid=uuid_of_text("wr")),
    ]
    records += [
        answer_with_id("beta answer", tokens=30_000),
        prompt_with_id("gamma question"),
        answer_with_id("delta answer", tokens=31_000),
    ]
    linked = [
        {**record, "parentUuid": records[i - 1]["uuid"] if i else None}
        for i, record in enumerate(records)
    ]
    return put_session(home, *linked)


def write_trimmed_child(home: ConfigHome, path: Path) -> Path:
    """Write a trimmed child with the real verb."""
    options = Options(threshold=80, keep_recent=0, assistant=10_000, min_savings=0)
    decided = trimming.plan_trim(
        trimming.scan_session(locate.session_file(str(path))), home.where, options
    )
    return Path(write_child(decided, home.where).file)


def test_a_trimmed_child_adds_no_hit_for_copied_text(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """The parent has the hit for complete and partial copies. A placeholder without text is not a copy."""
    parent = write_large_parent(config_home)
    child = write_trimmed_child(config_home, parent)
    for word, line, both in (
        ("alpha", 0, True),
        ("body3", 8, False),
        ("epsilon", 25, True),
        ("delta", 29, True),
    ):
        ((reference, sessions),) = hits_for_word(config_home, word)
        assert (reference, set(sessions)) == (
            f"{SESSION}:{line}",
            {SESSION, *([child.stem] if both else [])},
        ), word
    holding = read_index(config_home)
    assert holding.finds == build_new_index(config_home, tmp_path).finds
    assert "suppress" not in holding.words()  # a placeholder's own word


def test_a_handoff_s_lineage_is_not_indexed(config_home: ConfigHome) -> None:
    """Only the child's own words are found, not the block of its ancestors."""
    parent = write_large_parent(config_home)
    plan = agents.plan_fresh(
        locate.session_file(str(parent)),
        config_home.where,
        kind="handoff",
        next_step="write zymurgy",
    )
    receipt = write_child(plan, config_home.where)
    holding = read_index(config_home)
    assert {name for name, _ in holding.lines("zymurgi")} == {Path(receipt.file).name}
    assert "lineag" not in holding.words()


def test_a_child_has_the_hits_after_its_parent_is_deleted(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """Complete copies and the text of placeholders are found there. After a restore the parent has the hits again."""
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    parent = write_large_parent(config_home)
    child = write_trimmed_child(config_home, parent)
    before = {
        word: hits_for_word(config_home, word) for word in ("alpha", "epsilon", "zeta", "body3")
    }
    raw = parent.read_bytes()
    parent.unlink()
    assert [sessions for _, sessions in hits_for_word(config_home, "alpha")] == [(child.stem,)]
    assert [sessions for _, sessions in hits_for_word(config_home, "epsilon")] == [(child.stem,)]
    assert hits_for_word(config_home, "body3") == []
    assert read_index(config_home).finds == build_new_index(config_home, tmp_path).finds
    parent.write_bytes(raw)
    assert {word: hits_for_word(config_home, word) for word in before} == before


def test_a_rewritten_parent_keeps_its_hits(config_home: ConfigHome) -> None:
    """Its lines are at other places. The hit also names the fork."""
    shared = [prompt_with_id("alpha"), answer_with_id("beta")]
    parent = put_session(config_home, *shared)
    put_session(
        config_home,
        *(sdk_fork_record(record, SESSION, FORK) for record in shared),
        prompt_with_id("gamma"),
        name=FORK,
    )
    assert hits_for_word(config_home, "beta") == [(f"{SESSION}:1", (SESSION, FORK))]
    parent.write_bytes(session_bytes([prompt_with_id("zeta"), *shared]))
    assert hits_for_word(config_home, "beta") == [(f"{SESSION}:2", (SESSION, FORK))]
    parent.write_bytes(session_bytes([prompt_with_id("zeta")]))
    assert hits_for_word(config_home, "beta") == [(f"{FORK}:1", (FORK,))]


def test_a_repeated_id_with_another_text_is_not_a_copy(config_home: ConfigHome) -> None:
    """Any writer may choose ids, so another text is a separate hit, in the same file or another."""
    put_session(config_home, prompt_with_id("alpha", number=1), prompt_with_id("beta", number=1))
    put_session(config_home, prompt_with_id("alpha gamma", number=1), name=FORK)
    assert hits_for_word(config_home, "beta") == [(f"{SESSION}:1", (SESSION,))]
    assert set(hits_for_word(config_home, "alpha")) == {
        (f"{SESSION}:0", (SESSION,)),
        (f"{FORK}:0", (FORK,)),
    }


def test_similar_ids_are_distinguished(config_home: ConfigHome) -> None:
    """They have equal halves or only zeros, like ids written by hand."""
    ids = [
        f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}"
        for digit in "0123456789abcdef"
    ]
    for number, uuid in enumerate(ids):
        put_session(config_home, user("alpha", uuid=uuid), name=session_id(number))
    keys = {row.posting.key for row in read_index(config_home).rows}
    assert len(keys) == 16


def test_a_cycle_of_parents_is_indexed_once(config_home: ConfigHome) -> None:
    """The metadata is hostile. Each record is found once, and read once."""
    for one, other in ((SESSION, FORK), (FORK, SESSION)):
        line = {"continue_metadata": {"parent_session_id": other, "continuation_type": "fork"}}
        put_session(config_home, line, prompt_with_id("alpha"), name=one)
    ((_, sessions),) = hits_for_word(config_home, "alpha")
    assert set(sessions) == {SESSION, FORK}
    assert read_index(config_home).outcome.read_files == 0
