"""A bundle: what it holds, and what comes of it in another home, whole or as conversations."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from resume_hooks.derive import fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import ChildPlan, write_child, write_if_worthwhile
from resume_hooks.derive.imports.read_bundle import is_bundle, unpack_bundle
from resume_hooks.derive.verbs import caller as verb_caller
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.import_ import (
    ImportedSession,
    ImportSpec,
    import_sessions,
)
from resume_hooks.errors import CheckFailed, ImportFailed, NotATranscript
from resume_hooks.paths import Where, project_key
from resume_hooks.reading.bundle import BundleRedactor, BundleSeal, export_bundle
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    CWD,
    ConfigHome,
    Record,
    conversation,
    custom_title,
    session_bytes,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.crashes import crashes
from tests.needs import corpus_sessions

ONE = session_id(1)
TOKEN = "ghp_" + "R7kQ2mZx9Tb4Lw8Vn3Yc6Hd1Jf5Gs0Pa2BuE"


def other_home(root: Path) -> ConfigHome:
    """The config home of another machine."""
    config = root / "elsewhere" / ".claude"
    config.mkdir(parents=True)
    return ConfigHome(
        root / "elsewhere",
        config,
        {"HOME": str(root / "elsewhere"), "CLAUDE_CONFIG_DIR": str(config)},
    )


def project_session(home: ConfigHome, records: list[Any], session_id: str) -> SessionFile:
    """Return a session of the project."""
    return locate.session_file(write_session(home.project(), session_id, records))


def bundled(home: ConfigHome, *sessions: SessionFile, redact: bool = False) -> Path:
    """A bundle of sessions, as a file."""
    path = home.root / "x.bundle.json"
    path.write_bytes(
        b"".join(
            export_bundle(sessions, home.where, BundleRedactor(Redactor()) if redact else None)
        )
    )
    return path


def brought(
    path: Path, home: ConfigHome, *, whole: bool = True, force: bool = False, dry_run: bool = False
) -> list[ImportedSession]:
    """Its sessions as sessions of a folder of another home."""
    folder = home.root / "work"
    folder.mkdir(exist_ok=True)
    assert is_bundle(str(path))
    with unpack_bundle(str(path), home.where) as packed:
        return import_sessions(
            packed,
            str(path),
            ImportSpec(os.path.realpath(folder), whole, force),
            Caller(home.where, dry_run=dry_run),
        )


def talk() -> list[Record | bytes]:
    """A session with a call, a title, and a line that is not a record."""
    return [
        user("fix the parser", uuid="a", session_id=ONE),
        tool_use("t1", uuid="b", parent="a", ts=1, session_id=ONE),
        tool_result("t1", uuid="c", parent="b", ts=2, session_id=ONE),
        b'{"broken": ',
        custom_title("Parser", session_id=ONE),
    ]


@pytest.fixture
def there(tmp_path: Path) -> ConfigHome:
    """Another machine."""
    return other_home(tmp_path)


def beside(session: SessionFile) -> Path:
    """Files next to a session: an output, bytes that are not text, a sub-agent."""
    own = Path(session.path.removesuffix(".jsonl"))
    (own / "tool-results").mkdir(parents=True)
    (own / "subagents").mkdir()
    (own / "tool-results" / "out.txt").write_text("long output\n")
    (own / "tool-results" / "raw.bin").write_bytes(b"\xff\x00\xfe")
    (own / "subagents" / "agent-a1.jsonl").write_bytes(
        session_bytes([user("look", uuid="x", session_id=ONE)])
    )
    (own / "subagents" / "agent-a1.meta.json").write_text('{"agentType":"x"}')
    (own / "tool-results" / "link").symlink_to("/etc/passwd")
    return own


def test_a_bundle_is_one_json_document(config_home: ConfigHome) -> None:
    """Any parser can read it, and finds the records unchanged."""
    session = project_session(config_home, talk(), ONE)
    beside(session)
    whole = orjson.loads(bundled(config_home, session).read_bytes())
    assert (whole["resume_hooks_bundle"], whole["redacted"]) == (2, False)
    (only,) = whole["sessions"]
    assert only["session"]["session_id"] == ONE
    assert (only["session"]["title"], only["session"]["cwd"]) == ("Parser", CWD)
    types = ["user", "assistant", "user", "damaged-line", "custom-title"]
    assert [record["type"] for record in only["records"]] == types
    assert only["records"][0] == talk()[0]
    assert [file["place"] for file in only["files"]] == [
        "subagents/agent-a1.jsonl",
        "subagents/agent-a1.meta.json",
        "tool-results/out.txt",
        "tool-results/raw.bin",
    ]
    assert (only["sums"]["lines"], only["sums"]["damaged"], only["sums"]["left_out"]) == (5, 1, 0)


def test_whole_in_another_home(config_home: ConfigHome, there: ConfigHome) -> None:
    """The same id, every record with its number, the new folder, private files, and the session's other files."""
    session = project_session(config_home, talk(), ONE)
    own = beside(session)
    (came,) = brought(bundled(config_home, session), there)
    path = Path(came.receipt.file)
    assert path.name == f"{ONE}.jsonl"
    assert path.parent == there.config / "projects" / project_key(str(there.root / "work"))
    assert path.stat().st_mode & 0o777 == 0o600
    rows = [orjson.loads(row) for row in path.read_bytes().splitlines()]
    assert [row.get("uuid") for row in rows] == ["a", "b", "c", None, None]
    assert {row["cwd"] for row in rows if "cwd" in row} == {os.path.realpath(there.root / "work")}
    assert {**rows[0], "cwd": CWD} == talk()[0]
    for place in ("tool-results/out.txt", "tool-results/raw.bin", "subagents/agent-a1.jsonl"):
        assert (path.with_suffix("") / place).read_bytes() == (own / place).read_bytes()
    assert all(check.ok for check in came.receipt.checks)
    assert not [name for name in os.listdir(there.config / "resume-hooks") if name.endswith(".tmp")]


def test_a_lineage_stays_one(config_home: ConfigHome, there: ConfigHome) -> None:
    """Ids and links refer to each other in the new home; a fork still names its origin."""
    root = project_session(config_home, conversation(3, session_id=ONE), ONE)
    made = write_child(fork.plan_fork(root, config_home.where), config_home.where)
    child = locate.session_file(made.file)
    found = brought(bundled(config_home, root, child), there)
    rows = LineageFinder(there.where).find_lineage(found[1].receipt.file)
    assert [(row.session_id, row.status, row.kind) for row in rows] == [
        (ONE, "present", "original"),
        (made.session_id, "present", "fork"),
    ]
    first = orjson.loads(Path(found[1].receipt.file).read_bytes().splitlines()[0])[
        "continue_metadata"
    ]
    assert first["parent_session_file"] == found[0].receipt.file


def test_an_id_that_is_taken(config_home: ConfigHome, there: ConfigHome) -> None:
    """Another session has it there: a new one, everywhere.

    The child's links and its parent's follow.
    """
    root = project_session(config_home, conversation(3, session_id=ONE), ONE)
    made = write_child(fork.plan_fork(root, config_home.where), config_home.where)
    taken = Path(project_session(there, conversation(2, session_id=ONE), ONE).path)
    before = taken.read_bytes()
    first, second = brought(bundled(config_home, root, locate.session_file(made.file)), there)
    assert taken.read_bytes() == before
    assert first.session_id != ONE
    assert second.session_id == made.session_id
    assert ONE.encode() not in Path(first.receipt.file).read_bytes()
    assert ONE.encode() not in Path(second.receipt.file).read_bytes()
    rows = LineageFinder(there.where).find_lineage(second.receipt.file)
    assert [row.session_id for row in rows] == [first.session_id, second.session_id]


def test_twice_is_once(config_home: ConfigHome, there: ConfigHome) -> None:
    """The same bundle again makes nothing; with force another one."""
    session = project_session(config_home, conversation(3, session_id=ONE), ONE)
    path = bundled(config_home, session)
    (first,) = brought(path, there)
    (again,) = brought(path, there)
    assert (again.existing, again.session_id, again.receipt.written) == (True, ONE, False)
    (forced,) = brought(path, there, force=True)
    assert (forced.existing, forced.receipt.written) == (False, True)
    assert forced.session_id != first.session_id
    assert len(locate.all_sessions(there.where)) == 2


def test_conversations_alone(config_home: ConfigHome, there: ConfigHome) -> None:
    """New ids and only messages, as in any import; our own links record the lineage."""
    root = project_session(config_home, conversation(3, session_id=ONE), ONE)
    made = write_child(fork.plan_fork(root, config_home.where), config_home.where)
    path = bundled(config_home, root, locate.session_file(made.file))
    first, second = brought(path, there, whole=False)
    assert {first.session_id, second.session_id}.isdisjoint({ONE, made.session_id})
    rows = LineageFinder(there.where).find_lineage(second.receipt.file)
    assert [row.session_id for row in rows] == [first.session_id, second.session_id]
    again = brought(path, there, whole=False)
    assert [came.session_id for came in again] == [first.session_id, second.session_id]
    assert [came.existing for came in again] == [True, True]


def test_a_dry_run_writes_nothing(config_home: ConfigHome, there: ConfigHome) -> None:
    """This holds for both kinds of import."""
    session = project_session(config_home, conversation(3, session_id=ONE), ONE)
    path = bundled(config_home, session)
    for as_it_was in (True, False):
        (came,) = brought(path, there, whole=as_it_was, dry_run=True)
        assert not came.receipt.written
    assert locate.all_sessions(there.where) == []
    assert not (there.config / "projects").exists()


def test_one_that_fails_takes_the_others_back(
    config_home: ConfigHome, there: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either the whole bundle is imported or nothing."""
    one = project_session(config_home, talk(), ONE)
    beside(one)
    two = project_session(config_home, conversation(2, session_id=session_id(2)), session_id(2))
    path = bundled(config_home, one, two)

    def refuse(decided: ChildPlan, where: Where, *, dry_run: bool) -> Receipt:
        if decided.draft.session_id == two.session_id:
            raise CheckFailed("no", "no")
        return write_if_worthwhile(decided, where, dry_run=dry_run)

    monkeypatch.setattr(verb_caller, "write_if_worthwhile", refuse)
    with pytest.raises(CheckFailed):
        brought(path, there)
    assert [p for p in (there.config / "projects").rglob("*") if p.is_file()] == []
    assert not [name for name in os.listdir(there.config / "resume-hooks") if name.endswith(".tmp")]


def test_secrets_stay(config_home: ConfigHome) -> None:
    """Secrets in records, titles, outputs and sub-agents stay out of the bundle, and are counted."""
    records = [
        user(f"use {TOKEN} please", uuid="a", session_id=ONE),
        tool_use(
            "t1",
            uuid="b",
            parent="a",
            ts=1,
            session_id=ONE,
            name="Bash",
            tool_input={"command": f"x {TOKEN}"},
        ),
        custom_title(f"with {TOKEN}", session_id=ONE),
    ]
    session = project_session(config_home, records, ONE)
    own = beside(session)
    (own / "tool-results" / "out.txt").write_text(f"it is\n{TOKEN}\n")
    (own / "subagents" / "agent-a1.jsonl").write_bytes(
        session_bytes([user(TOKEN, uuid="x", session_id=ONE)])
    )
    taken = BundleRedactor(Redactor())
    content = b"".join(export_bundle([session], config_home.where, taken))
    assert TOKEN.encode() not in content
    assert taken.kinds.total() == 6
    assert orjson.loads(content)["redacted"] is True


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Return a bundle with one text replaced."""
    return lambda content: content.replace(old, new, 1)


def without_rows(said: bytes) -> Callable[[bytes], bytes]:
    """Return a bundle without the rows that contain a text."""
    return lambda content: b"".join(
        row for row in content.splitlines(keepends=True) if said not in row
    )


def with_its_session_twice(content: bytes) -> bytes:
    """The same session again."""
    rows = content.splitlines(keepends=True)
    return b"".join(rows[:-1]).removesuffix(b"\n") + b",\n" + b"".join(rows[1:])


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda content: content[:-3],
    "half": lambda content: content[: len(content) // 2],
    "a record less": without_rows(b"fix the parser"),
    "a record changed": replaced(b"fix the parser", b"fix the lexer!"),
    "newer": replaced(b'bundle":2', b'bundle":3'),
    "more behind": lambda content: content + b"{}\n",
    "an id that is a path": lambda content: content.replace(
        ONE.encode(), b"../" + ONE.encode()[3:]
    ),
    "no sessions": lambda content: re.sub(rb"(?s)\n.*\n(?=.)", b"\n", content),  # the frame alone
    "written anew": lambda content: orjson.dumps(orjson.loads(content), option=orjson.OPT_INDENT_2),
    "twice the same": with_its_session_twice,
    "a number for a title": replaced(b'"title":"Parser"', b'"title":7'),
    "another title": replaced(b'"title":"Parser"', b'"title":"Larser"'),
    "another folder": replaced(b'"cwd":"/', b'"cwd":"/x'),
    "a file changed": replaced(b"long output", b"lung output"),
    "a file elsewhere": replaced(b"tool-results/out.txt", b"tool-results/oot.txt"),
    "a file less": without_rows(b"tool-results/out.txt"),
    "fewer left out": replaced(b'"left_out":0', b'"left_out":1'),
    "no seal": lambda content: re.sub(rb',"seal":"[0-9a-f]{64}"', b"", content),
}
"""Every way in which a bundle can be wrong."""


@pytest.mark.parametrize("way", DAMAGE)
def test_a_damaged_one_is_refused(way: str, config_home: ConfigHome, there: ConfigHome) -> None:
    """The error is a sentence; nothing is written."""
    session = project_session(config_home, talk(), ONE)
    beside(session)
    path = bundled(config_home, session)
    damaged = DAMAGE[way](path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    with pytest.raises(ImportFailed):
        brought(path, there)
    assert locate.all_sessions(there.where) == []


@pytest.mark.parametrize(
    "place",
    ["../../evil.txt", "tool-results/../x", "/etc/x", "tool-results/.hidden", "subagents/evil.jsonl", "other/x", "",
     "tool-results/a/b", "memory/x"],
)  # fmt: skip
def test_a_place_that_is_none(
    place: str, config_home: ConfigHome, there: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is written only to the folder for such files, with any seal."""
    session = project_session(config_home, talk(), ONE)
    beside(session)
    path = bundled(config_home, session)
    monkeypatch.setattr(BundleSeal, "seal_sums", lambda _, sums: sums)
    path.write_bytes(path.read_bytes().replace(b"tool-results/out.txt", place.encode()))
    (came,) = brought(path, there)
    own = Path(came.receipt.file).with_suffix("")
    names = sorted(str(p.relative_to(own)) for p in own.rglob("*") if p.is_file())
    assert names == [
        "subagents/agent-a1.jsonl",
        "subagents/agent-a1.meta.json",
        "tool-results/raw.bin",
    ]
    assert not list(there.root.rglob("evil*"))


def test_nothing_was_said(config_home: ConfigHome, there: ConfigHome) -> None:
    """The last session must have a conversation."""
    session = project_session(config_home, [custom_title("x", session_id=ONE)], ONE)
    with pytest.raises(NotATranscript):
        brought(bundled(config_home, session), there, whole=False)


@pytest.mark.parametrize("path", corpus_sessions(), ids=lambda path: path.stem[:8])
def test_the_corpus_is_complete(path: Path, config_home: ConfigHome, there: ConfigHome) -> None:
    """Every real session: the same records in the same places, the same live chain."""
    folder = config_home.config / "projects" / path.parent.name
    folder.mkdir(parents=True)
    copy = Path(
        shutil.copyfile(path, folder / (path.name if len(path.stem) == 36 else f"{ONE}.jsonl"))
    )
    session = locate.session_file(str(copy))
    (came,) = brought(bundled(config_home, session), there)
    old, new = scan_transcript(str(copy)), scan_transcript(came.receipt.file)
    assert (new.line_count, [n.uuid for n in new.chain]) == (
        old.line_count,
        [n.uuid for n in old.chain],
    )
    assert [n.number for n in new.nodes] == [n.number for n in old.nodes]


def test_killed_at_every_step_the_next_import_ends_it(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """It imports the session under its own id, with its other files; nothing else is left."""
    session = project_session(config_home, conversation(2, session_id=ONE), ONE)
    outputs = Path(session.path).with_suffix("") / "tool-results"
    outputs.mkdir(parents=True)
    for name in ("one", "two"):
        (outputs / name).write_bytes(b"long output")
    bundle = bundled(config_home, session)
    home = other_home(tmp_path)

    def prepare() -> Callable[[], object]:
        shutil.rmtree(home.root)
        home.root.mkdir()
        return lambda: brought(bundle, home)

    folder = home.config / "projects" / project_key(os.path.realpath(home.root / "work"))
    for _ in crashes(prepare):
        brought(bundle, home)
        files = sorted(
            str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
        )
        files = [
            name for name in files if not name.startswith(".resume-hooks-")
        ]  # the next write sweeps those
        assert files == sorted(
            [f"{ONE}.jsonl", f"{ONE}/tool-results/one", f"{ONE}/tool-results/two"]
        )


def test_two_imports_at_once_make_one(config_home: ConfigHome, there: ConfigHome) -> None:
    """For whole sessions and for conversations: the second import finds the first one's session."""
    session = locate.session_file(
        write_session(config_home.project(), ONE, conversation(2, session_id=ONE))
    )
    path = bundled(config_home, session)
    for whole, made in ((True, 1), (False, 2)):
        with ThreadPoolExecutor(4) as threads:
            runs = [threads.submit(brought, path, there, whole=whole) for _ in range(4)]
        assert sorted(came.existing for run in runs for came in run.result()) == [
            False,
            True,
            True,
            True,
        ]
        assert len([*there.config.glob("projects/*/*.jsonl")]) == made


def test_whole_again_where_the_id_is_taken(config_home: ConfigHome, there: ConfigHome) -> None:
    """The first import got another id, and later imports find that session."""
    session = locate.session_file(
        write_session(config_home.project(), ONE, conversation(2, session_id=ONE))
    )
    path = bundled(config_home, session)
    write_session(there.project("/elsewhere"), ONE, conversation(5, session_id=ONE))
    (first,) = brought(path, there)
    (again,) = brought(path, there)
    assert (first.existing, again.existing, again.session_id) == (False, True, first.session_id)
    assert first.session_id != ONE
    (forced,) = brought(path, there, force=True)
    assert (forced.existing, forced.session_id == first.session_id) == (False, False)


def test_a_bundle_makes_no_answer_of_a_verb(config_home: ConfigHome, there: ConfigHome) -> None:
    """A child marked as made by ``back`` would be shown for ``back``, so it counts as imported."""
    root = project_session(config_home, conversation(3, session_id=ONE), ONE)
    made = write_child(fork.plan_fork(root, config_home.where), config_home.where)
    path = bundled(config_home, root, locate.session_file(made.file))
    spec, caller = ImportSpec(str(there.root)), Caller(there.where)
    with unpack_bundle(str(path), there.where) as packed:
        named = [each._replace(head=each.head._replace(kind="back")) for each in packed]
        _, child = import_sessions(named, str(path), spec, caller)
    (link,) = [row for row in read_links(there.where) if row.child_id == child.session_id]
    assert link.kind == "import"
