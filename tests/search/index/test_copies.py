"""A record that lies in several sessions is kept once, at its origin; who else holds it is noted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from resume_hooks.derive import fork, fresh_child
from resume_hooks.derive.child.write import write
from resume_hooks.derive.trim import plan as trimming
from resume_hooks.derive.trim.options import Options
from resume_hooks.search.index import update
from resume_hooks.search.index.connect import opened_index
from resume_hooks.sessions import locate
from tests.builders import SESSION, ConfigHome, Record, call, result, session_bytes, session_id, user
from tests.search.index.probe import aged, append, cold, held, owners, replied, said, uid, written

NAME = f"{SESSION}.jsonl"
FORK, GRANDCHILD = session_id(2), session_id(3)
BULK = "many words, " * 100


def forked(record: Record, source: str, target: str) -> Record:
    """A record as the SDK's fork copies it: a new id, and the old one beside it."""
    mark = {"sessionId": source, "messageUuid": record["uuid"]}
    return {**record, "uuid": uid(record["uuid"] + target), "sessionId": target, "forkedFrom": mark}


def test_a_fork_of_the_client_is_a_copy(config_home: ConfigHome) -> None:
    """The same ids in another file: one row at the file that was there first, one copy, and what is new."""
    shared = [said("alpha"), replied("beta")]
    written(config_home, *shared)
    aged(written(config_home, *({**record, "sessionId": FORK} for record in shared), said("gamma"), name=FORK))
    with opened_index(config_home.where) as index:
        found = owners(index)
    assert sum(map(len, found.values())) == 2
    assert len(found) == 3
    assert found[f"{FORK}.jsonl:2"] == []


def test_a_fork_of_the_sdk_is_a_copy_and_so_is_its_fork(config_home: ConfigHome) -> None:
    """New ids that name the old ones: originals come first, whatever the files' times say."""
    shared = [said("alpha"), replied("beta")]
    once = [forked(record, SESSION, FORK) for record in shared]
    twice = [forked(record, FORK, GRANDCHILD) for record in once]
    written(config_home, *twice, said("delta"), name=GRANDCHILD)
    written(config_home, *once, said("gamma"), name=FORK, old=False)
    written(config_home, *shared, old=False)
    with opened_index(config_home.where) as index:
        found = owners(index)
    both = [(f"{FORK}.jsonl", False), (f"{GRANDCHILD}.jsonl", False)]
    assert found == {f"{NAME}:0": both, f"{NAME}:1": both, f"{FORK}.jsonl:2": [], f"{GRANDCHILD}.jsonl:2": []}


def test_a_fork_of_ours_is_a_copy_also_of_a_fork_of_the_sdk(config_home: ConfigHome) -> None:
    """It keeps the ids and names what it came from; nothing more is noted for that."""
    shared = [said("alpha"), replied("beta", parent=uid("alpha"), ts=1)]
    once = [forked(record, SESSION, FORK) for record in shared]
    once[1]["parentUuid"] = once[0]["uuid"]
    written(config_home, *shared)
    theirs = written(config_home, *once, name=FORK)
    made = write(fork.plan(locate.session_file(str(theirs)), config_home.where), config_home.where)
    again = write(fork.plan(locate.session_file(str(theirs.with_name(NAME))), config_home.where), config_home.where)
    with opened_index(config_home.where) as index:
        found = owners(index)
        aliases = index.db.execute("SELECT count(*) FROM aliases").fetchone()
    copies = {f"{FORK}.jsonl", Path(made.file).name, Path(again.file).name}
    assert {name: {file for file, _ in there} for name, there in found.items() if name.startswith(NAME)} == {
        f"{NAME}:0": copies,
        f"{NAME}:1": copies,
    }
    assert aliases == (2,)


def bulky(home: ConfigHome) -> Path:
    """A parent with something to trim, under real ids."""
    records: list[Record] = [said("alpha question")]
    for number in range(12):
        records += [
            replied([call(f"c{number}", file_path=f"/x{number}.py")], number=f"a{number}", tokens=20_000 + number),
            user([result(f"c{number}", f"body{number} {BULK}")], uuid=uid(f"r{number}")),
        ]
    writes = [{"type": "text", "text": "epsilon"}, call("w", "Write", file_path="/x.py", content=f"zeta {BULK}")]
    records += [replied(writes, number="w", tokens=29_000), user([result("w")], uuid=uid("wr"))]
    records += [replied("beta answer", tokens=30_000), said("gamma question"), replied("delta answer", tokens=31_000)]
    linked = [{**record, "parentUuid": records[i - 1]["uuid"] if i else None} for i, record in enumerate(records)]
    return written(home, *linked)


def trimmed(home: ConfigHome, path: Path) -> Path:
    """A trimmed child, made by the real verb."""
    options = Options(threshold=80, keep_recent=0, assistant=10_000, min_savings=0)
    decided = trimming.plan(trimming.read(locate.session_file(str(path)), 200_000), home.where, options)
    return Path(write(decided, home.where).file)


def test_a_trimmed_child_adds_nothing_that_its_parent_says(config_home: ConfigHome, tmp_path: Path) -> None:
    """Whole records and stubs are copies of the parent's; of its own it has its title and its opening."""
    parent = bulky(config_home)
    alone = held(config_home)
    child = trimmed(config_home, parent)
    holding = held(config_home)
    assert {find for find in holding.finds if find[0] == NAME} == alone.finds
    assert holding.finds == cold(config_home, tmp_path).finds
    with opened_index(config_home.where) as index:
        copies = [copy for held_by in owners(index).values() for copy in held_by]
    assert (child.name, True) in copies
    assert (child.name, False) in copies
    assert "suppress" not in holding.words()  # a placeholder's own word


def test_a_handoff_s_lineage_is_not_indexed(config_home: ConfigHome) -> None:
    """Of a fresh child only its own words are found, not the block that names its ancestors."""
    parent = bulky(config_home)
    plan = fresh_child.plan(
        locate.session_file(str(parent)), config_home.where, kind="handoff", next_step="write zymurgy"
    )
    receipt = write(plan, config_home.where)
    holding = held(config_home)
    assert {name for name, _ in holding.lines("zymurgi")} == {Path(receipt.file).name}
    assert "lineag" not in holding.words()


def test_a_child_keeps_what_its_parent_took_along(config_home: ConfigHome, tmp_path: Path) -> None:
    """The parent gone: whole copies are found in the child, and so is what its stubs still say; restored, as ever."""
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    parent = bulky(config_home)
    child = trimmed(config_home, parent)
    before = held(config_home).finds
    raw = parent.read_bytes()
    parent.unlink()
    holding = held(config_home)
    assert holding.finds == cold(config_home, tmp_path).finds
    assert {name for name, *_ in holding.finds} == {child.name}
    with opened_index(config_home.where) as index:
        rows = index.db.execute("SELECT f.path, r.offset, r.length FROM records r JOIN files f ON f.id=r.file")
        for path, offset, length in rows.fetchall():
            assert Path(path).read_bytes()[offset : offset + length].endswith(b"}\n")
    parent.write_bytes(raw)
    aged(parent)
    assert held(config_home).finds == before
    with opened_index(config_home.where) as index:
        assert all(place.startswith((NAME, child.name)) for place in owners(index))
        mine = [place for place, copies in owners(index).items() if place.startswith(child.name) and copies]
    assert not mine, "what the parent says is its own again"


def test_a_parent_that_is_rewritten_stays_the_origin(config_home: ConfigHome, tmp_path: Path) -> None:
    """With a child that forked from it: words, owners and copies are those of an index made anew."""
    shared = [said("alpha"), replied("beta")]
    parent = written(config_home, *shared)
    written(config_home, *(forked(record, SESSION, FORK) for record in shared), said("gamma"), name=FORK)
    held(config_home)
    parent.write_bytes(session_bytes([said("zeta"), *shared]))
    assert held(config_home).finds == cold(config_home, tmp_path).finds
    with opened_index(config_home.where) as index:
        found = owners(index)
    assert found[f"{NAME}:1"] == found[f"{NAME}:2"] == [(f"{FORK}.jsonl", False)]


def test_an_id_twice_in_one_file_is_two_records(config_home: ConfigHome) -> None:
    """Both may be looked for; neither is a copy."""
    written(config_home, said("alpha", number=1), said("beta", number=1))
    assert held(config_home).words() == {"alpha", "beta"}


def test_ids_of_one_pattern_are_different_ids(config_home: ConfigHome) -> None:
    """Equal halves, nils: hand-made ids are kept apart."""
    ids = [f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}" for digit in "0123456789abcdef"]
    for number, uuid in enumerate(ids):
        written(config_home, user(f"word{number}", uuid=uuid), name=session_id(number))
    with opened_index(config_home.where) as index:
        assert index.db.execute("SELECT count(*) FROM copies").fetchone() == (0,)
    assert {f"word{number}" for number in range(16)} <= held(config_home).words()


def test_files_that_name_each_other_as_parents_end(config_home: ConfigHome) -> None:
    """A circle of hostile metadata is read once like any other files."""
    for one, other in ((SESSION, FORK), (FORK, SESSION)):
        line = {"continue_metadata": {"parent_session_id": other, "continuation_type": "fork"}}
        written(config_home, line, said(f"word {one}"), name=one)
    held(config_home)
    append(config_home.project() / NAME, said("gamma"))
    assert held(config_home).outcome.files == 1
    assert held(config_home).outcome.files == 0


def test_copies_don_t_make_the_index_look_worn(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many forks of one session: a deletion doesn't make it anew; it is made anew once most of it is really gone."""
    shared = [said(f"word{number}", number=number) for number in range(100)]
    for number in range(2, 14):
        written(config_home, *shared, name=session_id(number))
    held(config_home)
    monkeypatch.setattr(update, "MOSTLY_GONE", 50)
    (config_home.project() / f"{session_id(13)}.jsonl").unlink()
    assert not held(config_home).rebuilt
    for number in range(3, 13):
        (config_home.project() / f"{session_id(number)}.jsonl").unlink()
    written(config_home, said("alpha"), name=session_id(2))
    holding = held(config_home)
    assert holding.rebuilt
    assert holding.words() == {"alpha"}


def test_random_histories_end_as_if_made_anew(config_home: ConfigHome, tmp_path: Path) -> None:
    """Appends, rewrites, deletions, torn lines and copies in any order: what is found is what a cold build finds."""
    for seed in range(12):
        _history(config_home, tmp_path, random.Random(seed))


def _history(home: ConfigHome, tmp_path: Path, chance: random.Random) -> None:
    folder = home.project()
    for path in folder.iterdir():
        path.unlink()
    pool: list[Record] = []
    for step in range(25):
        path = folder / f"{session_id(chance.randrange(1, 5))}.jsonl"
        fresh = said(f"w{step} {chance.choice('abc')}x w{chance.randrange(9)}", number=f"{chance.random()}")
        pool.append(fresh)
        _happens(path, fresh, pool, chance)
        if path.exists() and chance.random() < 0.5:
            aged(path)
        if chance.random() < 0.6:
            held(home)
    for path in folder.iterdir():
        aged(path)
    warm, fresh_build = held(home), cold(home, tmp_path)
    assert warm.finds == fresh_build.finds, warm.finds ^ fresh_build.finds


def _happens(path: Path, fresh: Record, pool: list[Record], chance: random.Random) -> None:
    """One thing that may happen to a file."""
    what = chance.randrange(7)
    raw = path.read_bytes() if path.exists() else b""
    if what == 1:
        path.write_bytes(session_bytes(chance.sample(pool, min(len(pool), chance.randrange(1, 6)))))
    elif what == 0 and raw:
        path.unlink()
    elif what == 2 and raw:
        path.write_bytes(raw[: chance.randrange(1, 2_000)])
    elif what == 3 and raw:
        append(path, b"garbage", fresh)
    elif what == 4 and raw:
        path.rename(path.with_name(f"{session_id(5)}.jsonl"))
    else:
        copied = chance.choice(pool)
        append(path, fresh, *([copied] if copied is not fresh and copied["uuid"].encode() not in raw else []))
