"""Tests of records that several sessions contain.

Such a record is one hit in the session where it was first written. The hit names the other
sessions.
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
    read_index,
    uuid_of_text,
    write_session_file,
)

SESSION_FILE_NAME = f"{SESSION}.jsonl"
FORK, GRANDCHILD = session_id(2), session_id(3)
LONG_TEXT = "many words, " * 100

HitWithSessions = tuple[str, tuple[str, ...]]
"""A hit's reference, and the ids of the hit's sessions. The session that contains the hit is first.
"""


def hits_for_word(home: ConfigHome, word: str) -> list[HitWithSessions]:
    """Return the hits of a search for one word."""
    return [
        (hit.reference, hit.session_ids) for hit in search_index([word], Scope(), home.where).hits
    ]


def make_sdk_fork_record(record: Record, source_id: str, fork_id: str) -> Record:
    """Return the record as the SDK writes it to a fork: with a new uuid and a link to the old one."""
    mark = {"sessionId": source_id, "messageUuid": record["uuid"]}
    return {
        **record,
        "uuid": uuid_of_text(record["uuid"] + fork_id),
        "sessionId": fork_id,
        "forkedFrom": mark,
    }


def test_a_record_that_a_fork_copied_is_one_hit(config_home: ConfigHome) -> None:
    """A record that the client copied to a fork is one hit, in the parent.

    The client keeps the uuid. Later records of the fork are hits in the fork.
    """
    shared = [prompt_with_id("alpha"), answer_with_id("beta")]
    write_session_file(config_home, *shared)
    fork_of = [*({**record, "sessionId": FORK} for record in shared), prompt_with_id("gamma")]
    write_session_file(config_home, *fork_of, session_uuid=FORK, is_old=False)
    for word, line in (("alpha", 0), ("beta", 1)):
        assert hits_for_word(config_home, word) == [(f"{SESSION}:{line}", (SESSION, FORK))]
    assert hits_for_word(config_home, "gamma") == [(f"{FORK}:2", (FORK,))]


def test_a_record_that_the_sdk_copied_twice_is_one_hit(config_home: ConfigHome) -> None:
    """A record that the SDK copied twice is one hit, in the original session.

    The SDK writes a new uuid and stores the old one. The times of the files do not matter.
    """
    shared = [prompt_with_id("alpha"), answer_with_id("beta")]
    once = [make_sdk_fork_record(record, SESSION, FORK) for record in shared]
    twice = [make_sdk_fork_record(record, FORK, GRANDCHILD) for record in once]
    write_session_file(config_home, *twice, prompt_with_id("delta"), session_uuid=GRANDCHILD)
    write_session_file(config_home, *once, prompt_with_id("gamma"), session_uuid=FORK, is_old=False)
    write_session_file(config_home, *shared, is_old=False)
    ((reference, sessions),) = hits_for_word(config_home, "alpha")
    assert (reference, sessions[0], set(sessions)) == (
        f"{SESSION}:0",
        SESSION,
        {SESSION, FORK, GRANDCHILD},
    )


def test_a_record_in_our_fork_of_an_sdk_fork_is_one_hit(config_home: ConfigHome) -> None:
    """A record that our fork copied from an SDK fork is one hit, in the original session.

    Our fork keeps the uuids and names its parent. The original is preferred even if its file is
    newer.
    """
    shared = [prompt_with_id("alpha"), answer_with_id("beta", parent=uuid_of_text("alpha"), ts=1)]
    once = [make_sdk_fork_record(record, SESSION, FORK) for record in shared]
    once[1]["parentUuid"] = once[0]["uuid"]
    own = write_session_file(config_home, *shared)
    theirs = write_session_file(config_home, *once, session_uuid=FORK)
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
    """Write a session whose long tool results can be trimmed, and return its path.

    The uuids of its records are valid.
    """
    records: list[Record] = [prompt_with_id("alpha question")]
    for number in range(12):
        records += [
            answer_with_id(
                [call(f"c{number}", file_path=f"/x{number}.py")],
                uuid_seed=f"a{number}",
                tokens=20_000 + number,
            ),
            user(
                [result(f"c{number}", f"body{number} {LONG_TEXT}")], uuid=uuid_of_text(f"r{number}")
            ),
        ]
    writes = [
        {"type": "text", "text": "epsilon"},
        call("w", "Write", file_path="/x.py", content=f"zeta {LONG_TEXT}"),
    ]
    records += [
        answer_with_id(writes, uuid_seed="w", tokens=29_000),
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
    return write_session_file(home, *linked)


def write_trimmed_child(home: ConfigHome, path: Path) -> Path:
    """Trim the session at ``path`` and return the path of the child."""
    options = Options(threshold=80, keep_recent=0, assistant=10_000, min_savings=0)
    decided = trimming.plan_trim(
        trimming.scan_session(locate.session_file(str(path))), home.where, options
    )
    return Path(write_child(decided, home.where).file)


def test_a_trimmed_child_adds_no_hit_for_copied_text(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """Text that a trimmed child copied from its parent is a hit in the parent only.

    The hit also names the child, unless the child contains only a placeholder for the text.
    """
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
    assert holding.found_words == build_new_index(config_home, tmp_path).found_words
    assert "suppress" not in holding.words()  # This word occurs in placeholders.


def test_the_lineage_of_a_handoff_is_not_indexed(config_home: ConfigHome) -> None:
    """The index has a handoff's next step but not its lineage block."""
    parent = write_large_parent(config_home)
    plan = agents.plan_fresh_child(
        locate.session_file(str(parent)),
        config_home.where,
        kind="handoff",
        next_step="write zymurgy",
    )
    receipt = write_child(plan, config_home.where)
    holding = read_index(config_home)
    assert {name for name, _ in holding.lines_with_word("zymurgi")} == {Path(receipt.file).name}
    assert "lineag" not in holding.words()


def test_a_child_gets_the_hits_of_a_deleted_parent(config_home: ConfigHome, tmp_path: Path) -> None:
    """After the parent is deleted, text that the child copied is found in the child.

    When the parent is restored, the text is found in the parent again.
    """
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
    assert read_index(config_home).found_words == build_new_index(config_home, tmp_path).found_words
    parent.write_bytes(raw)
    assert {word: hits_for_word(config_home, word) for word in before} == before


def test_a_rewritten_parent_keeps_its_hits(config_home: ConfigHome) -> None:
    """After a parent was rewritten, its hits have the new line numbers and still name the fork.

    If the parent lost a record, the fork has the hit.
    """
    shared = [prompt_with_id("alpha"), answer_with_id("beta")]
    parent = write_session_file(config_home, *shared)
    write_session_file(
        config_home,
        *(make_sdk_fork_record(record, SESSION, FORK) for record in shared),
        prompt_with_id("gamma"),
        session_uuid=FORK,
    )
    assert hits_for_word(config_home, "beta") == [(f"{SESSION}:1", (SESSION, FORK))]
    parent.write_bytes(session_bytes([prompt_with_id("zeta"), *shared]))
    assert hits_for_word(config_home, "beta") == [(f"{SESSION}:2", (SESSION, FORK))]
    parent.write_bytes(session_bytes([prompt_with_id("zeta")]))
    assert hits_for_word(config_home, "beta") == [(f"{FORK}:1", (FORK,))]


def test_a_repeated_id_with_another_text_is_not_a_copy(config_home: ConfigHome) -> None:
    """A record with the uuid of another record but a different text is a separate hit.

    A hostile or faulty program may repeat a uuid.
    """
    write_session_file(
        config_home, prompt_with_id("alpha", uuid_seed=1), prompt_with_id("beta", uuid_seed=1)
    )
    write_session_file(config_home, prompt_with_id("alpha gamma", uuid_seed=1), session_uuid=FORK)
    assert hits_for_word(config_home, "beta") == [(f"{SESSION}:1", (SESSION,))]
    assert set(hits_for_word(config_home, "alpha")) == {
        (f"{SESSION}:0", (SESSION,)),
        (f"{FORK}:0", (FORK,)),
    }


def test_similar_ids_are_distinguished(config_home: ConfigHome) -> None:
    """Records with similar uuids, such as ``11111111-1111-...``, are different records."""
    ids = [
        f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}"
        for digit in "0123456789abcdef"
    ]
    for number, uuid in enumerate(ids):
        write_session_file(config_home, user("alpha", uuid=uuid), session_uuid=session_id(number))
    keys = {row.posting.key for row in read_index(config_home).rows}
    assert len(keys) == 16


def test_a_cycle_of_parents_is_indexed_once(config_home: ConfigHome) -> None:
    """Two sessions that name each other as parent are indexed, and the record they share is one hit."""
    for one, other in ((SESSION, FORK), (FORK, SESSION)):
        line = {"continue_metadata": {"parent_session_id": other, "continuation_type": "fork"}}
        write_session_file(config_home, line, prompt_with_id("alpha"), session_uuid=one)
    ((_, sessions),) = hits_for_word(config_home, "alpha")
    assert set(sessions) == {SESSION, FORK}
    assert read_index(config_home).outcome.read_file_count == 0
