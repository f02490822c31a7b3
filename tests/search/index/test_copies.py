"""A record that is in several sessions is one hit, at the session it was first said in.

The others are named.
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
    append,
    cold,
    prompt_with_id,
    put_session,
    read_index,
    replied,
    uid,
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
    return {**record, "uuid": uid(record["uuid"] + target), "sessionId": target, "forkedFrom": mark}


def test_a_fork_of_the_client_is_one_hit(config_home: ConfigHome) -> None:
    """The same ids in another file: found where they were first, and what the fork added in the fork."""
    shared = [prompt_with_id("alpha"), replied("beta")]
    put_session(config_home, *shared)
    fork_of = [*({**record, "sessionId": FORK} for record in shared), prompt_with_id("gamma")]
    put_session(config_home, *fork_of, name=FORK, old=False)
    for word, line in (("alpha", 0), ("beta", 1)):
        assert hits_for_word(config_home, word) == [(f"{SESSION}:{line}", (SESSION, FORK))]
    assert hits_for_word(config_home, "gamma") == [(f"{FORK}:2", (FORK,))]


def test_a_fork_of_the_sdk_is_one_hit_and_so_is_its_fork(config_home: ConfigHome) -> None:
    """New ids that name the old ones: the original comes first, whatever the files' times say."""
    shared = [prompt_with_id("alpha"), replied("beta")]
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


def test_a_fork_of_ours_is_one_hit_also_of_a_fork_of_the_sdk(config_home: ConfigHome) -> None:
    """It keeps the ids and names its parent, which comes first though it was written to later."""
    shared = [prompt_with_id("alpha"), replied("beta", parent=uid("alpha"), ts=1)]
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
    append(own, prompt_with_id("gamma"))
    ((reference, sessions),) = hits_for_word(config_home, "alpha")
    assert (reference, set(sessions)) == (f"{SESSION}:0", {SESSION, FORK, again.stem, made.stem})


def bulky(home: ConfigHome) -> Path:
    """A parent with something to trim, under real ids."""
    records: list[Record] = [prompt_with_id("alpha question")]
    for number in range(12):
        records += [
            replied(
                [call(f"c{number}", file_path=f"/x{number}.py")],
                number=f"a{number}",
                tokens=20_000 + number,
            ),
            user([result(f"c{number}", f"body{number} {BULK}")], uuid=uid(f"r{number}")),
        ]
    writes = [
        {"type": "text", "text": "epsilon"},
        call("w", "Write", file_path="/x.py", content=f"zeta {BULK}"),
    ]
    records += [replied(writes, number="w", tokens=29_000), user([result("w")], uuid=uid("wr"))]
    records += [
        replied("beta answer", tokens=30_000),
        prompt_with_id("gamma question"),
        replied("delta answer", tokens=31_000),
    ]
    linked = [
        {**record, "parentUuid": records[i - 1]["uuid"] if i else None}
        for i, record in enumerate(records)
    ]
    return put_session(home, *linked)


def trimmed_child(home: ConfigHome, path: Path) -> Path:
    """Return a trimmed child, made by the real verb."""
    options = Options(threshold=80, keep_recent=0, assistant=10_000, min_savings=0)
    decided = trimming.plan_trim(
        trimming.scan_session(locate.session_file(str(path))), home.where, options
    )
    return Path(write_child(decided, home.where).file)


def test_a_trimmed_child_adds_nothing_that_its_parent_says(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """What it took along is found at the parent, whole or in part.

    A stub that says nothing is not a copy.
    """
    parent = bulky(config_home)
    child = trimmed_child(config_home, parent)
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
    assert holding.finds == cold(config_home, tmp_path).finds
    assert "suppress" not in holding.words()  # a placeholder's own word


def test_a_handoff_s_lineage_is_not_indexed(config_home: ConfigHome) -> None:
    """Of a fresh child only its own words are found, not the block that names its ancestors."""
    parent = bulky(config_home)
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


def test_a_child_keeps_what_its_parent_took_along(config_home: ConfigHome, tmp_path: Path) -> None:
    """The parent gone: what is whole in the child is found there, and what its stubs still say.

    Restored, as ever.
    """
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    parent = bulky(config_home)
    child = trimmed_child(config_home, parent)
    before = {
        word: hits_for_word(config_home, word) for word in ("alpha", "epsilon", "zeta", "body3")
    }
    raw = parent.read_bytes()
    parent.unlink()
    assert [sessions for _, sessions in hits_for_word(config_home, "alpha")] == [(child.stem,)]
    assert [sessions for _, sessions in hits_for_word(config_home, "epsilon")] == [(child.stem,)]
    assert hits_for_word(config_home, "body3") == []
    assert read_index(config_home).finds == cold(config_home, tmp_path).finds
    parent.write_bytes(raw)
    assert {word: hits_for_word(config_home, word) for word in before} == before


def test_a_parent_that_is_rewritten_stays_the_origin(config_home: ConfigHome) -> None:
    """Its lines lie elsewhere now; the hit is there, with the fork that holds it too."""
    shared = [prompt_with_id("alpha"), replied("beta")]
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


def test_an_id_that_says_something_else_is_not_a_copy(config_home: ConfigHome) -> None:
    """Ids are given by whoever writes a file: a second text under one is a hit of its own, in one file or two."""
    put_session(config_home, prompt_with_id("alpha", number=1), prompt_with_id("beta", number=1))
    put_session(config_home, prompt_with_id("alpha gamma", number=1), name=FORK)
    assert hits_for_word(config_home, "beta") == [(f"{SESSION}:1", (SESSION,))]
    assert set(hits_for_word(config_home, "alpha")) == {
        (f"{SESSION}:0", (SESSION,)),
        (f"{FORK}:0", (FORK,)),
    }


def test_ids_of_one_pattern_are_different_ids(config_home: ConfigHome) -> None:
    """Equal halves, nils: hand-made ids are kept apart."""
    ids = [
        f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}"
        for digit in "0123456789abcdef"
    ]
    for number, uuid in enumerate(ids):
        put_session(config_home, user("alpha", uuid=uuid), name=session_id(number))
    keys = {row.posting.key for row in read_index(config_home).rows}
    assert len(keys) == 16


def test_sessions_that_name_each_other_as_parents(config_home: ConfigHome) -> None:
    """A circle of hostile metadata: each record is found once, and read once."""
    for one, other in ((SESSION, FORK), (FORK, SESSION)):
        line = {"continue_metadata": {"parent_session_id": other, "continuation_type": "fork"}}
        put_session(config_home, line, prompt_with_id("alpha"), name=one)
    ((_, sessions),) = hits_for_word(config_home, "alpha")
    assert set(sessions) == {SESSION, FORK}
    assert read_index(config_home).outcome.read_files == 0
