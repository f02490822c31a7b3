"""Tests of exporting sessions to a bundle and importing the bundle in another home."""

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
from tests.crashes import kill_before_each_change
from tests.needs import corpus_sessions

FIRST_SESSION_ID = session_id(1)
SECRET_TOKEN = "ghp_" + "R7kQ2mZx9Tb4Lw8Vn3Yc6Hd1Jf5Gs0Pa2BuE"


def other_home(root: Path) -> ConfigHome:
    """Return the config home of another machine."""
    config = root / "elsewhere" / ".claude"
    config.mkdir(parents=True)
    return ConfigHome(
        root / "elsewhere",
        config,
        {"HOME": str(root / "elsewhere"), "CLAUDE_CONFIG_DIR": str(config)},
    )


def write_project_session(home: ConfigHome, records: list[Any], session_id: str) -> SessionFile:
    """Write a session in the project's folder."""
    return locate.session_file(write_session(home.project(), session_id, records))


def write_bundle(home: ConfigHome, *sessions: SessionFile, redact: bool = False) -> Path:
    """Write a bundle of these sessions and return its path. With ``redact``, the bundle has no secrets."""
    path = home.root / "x.bundle.json"
    path.write_bytes(
        b"".join(
            export_bundle(sessions, home.where, BundleRedactor(Redactor()) if redact else None)
        )
    )
    return path


def import_bundle(
    path: Path,
    home: ConfigHome,
    *,
    is_whole: bool = True,
    force: bool = False,
    dry_run: bool = False,
) -> list[ImportedSession]:
    """Import a bundle into a folder of another home, as whole sessions or as conversations."""
    folder = home.root / "work"
    folder.mkdir(exist_ok=True)
    assert is_bundle(str(path))
    with unpack_bundle(str(path), home.where) as packed:
        return import_sessions(
            packed,
            str(path),
            ImportSpec(os.path.realpath(folder), is_whole, force),
            Caller(home.where, dry_run=dry_run),
        )


def make_session_records() -> list[Record | bytes]:
    """Return a session with a call, a title and a damaged line."""
    return [
        user("fix the parser", uuid="a", session_id=FIRST_SESSION_ID),
        tool_use("t1", uuid="b", parent="a", ts=1, session_id=FIRST_SESSION_ID),
        tool_result("t1", uuid="c", parent="b", ts=2, session_id=FIRST_SESSION_ID),
        b'{"broken": ',
        custom_title("Parser", session_id=FIRST_SESSION_ID),
    ]


@pytest.fixture
def second_home(tmp_path: Path) -> ConfigHome:
    """Return the config home of another machine."""
    return other_home(tmp_path)


def write_sidecars(session: SessionFile) -> Path:
    """Write files next to a session: an output, binary data, a sub-agent and a link."""
    own = Path(session.path.removesuffix(".jsonl"))
    (own / "tool-results").mkdir(parents=True)
    (own / "subagents").mkdir()
    (own / "tool-results" / "out.txt").write_text("long output\n")
    (own / "tool-results" / "raw.bin").write_bytes(b"\xff\x00\xfe")
    (own / "subagents" / "agent-a1.jsonl").write_bytes(
        session_bytes([user("look", uuid="x", session_id=FIRST_SESSION_ID)])
    )
    (own / "subagents" / "agent-a1.meta.json").write_text('{"agentType":"x"}')
    (own / "tool-results" / "link").symlink_to("/etc/passwd")
    return own


def test_a_bundle_is_one_json_document(config_home: ConfigHome) -> None:
    """A bundle is a JSON document that contains the session's records and its other files.

    Each damaged line is stored as a record of its own. A link is omitted.
    """
    session = write_project_session(config_home, make_session_records(), FIRST_SESSION_ID)
    write_sidecars(session)
    whole = orjson.loads(write_bundle(config_home, session).read_bytes())
    assert (whole["resume_hooks_bundle"], whole["redacted"]) == (2, False)
    (only,) = whole["sessions"]
    assert only["session"]["session_id"] == FIRST_SESSION_ID
    assert (only["session"]["title"], only["session"]["cwd"]) == ("Parser", CWD)
    types = ["user", "assistant", "user", "damaged-line", "custom-title"]
    assert [record["type"] for record in only["records"]] == types
    assert only["records"][0] == make_session_records()[0]
    assert [file["place"] for file in only["files"]] == [
        "subagents/agent-a1.jsonl",
        "subagents/agent-a1.meta.json",
        "tool-results/out.txt",
        "tool-results/raw.bin",
    ]
    assert (only["sums"]["lines"], only["sums"]["damaged"], only["sums"]["left_out"]) == (5, 1, 0)


def test_a_whole_session_is_imported_in_another_home(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """An imported session keeps its id, records and other files, and contains the new folder's name."""
    session = write_project_session(config_home, make_session_records(), FIRST_SESSION_ID)
    own = write_sidecars(session)
    (came,) = import_bundle(write_bundle(config_home, session), second_home)
    path = Path(came.receipt.file)
    assert path.name == f"{FIRST_SESSION_ID}.jsonl"
    assert path.parent == second_home.config / "projects" / project_key(
        str(second_home.root / "work")
    )
    assert path.stat().st_mode & 0o777 == 0o600
    rows = [orjson.loads(row) for row in path.read_bytes().splitlines()]
    assert [row.get("uuid") for row in rows] == ["a", "b", "c", None, None]
    assert {row["cwd"] for row in rows if "cwd" in row} == {
        os.path.realpath(second_home.root / "work")
    }
    assert {**rows[0], "cwd": CWD} == make_session_records()[0]
    for place in ("tool-results/out.txt", "tool-results/raw.bin", "subagents/agent-a1.jsonl"):
        assert (path.with_suffix("") / place).read_bytes() == (own / place).read_bytes()
    assert all(check.ok for check in came.receipt.checks)
    assert not [
        name for name in os.listdir(second_home.config / "resume-hooks") if name.endswith(".tmp")
    ]


def test_an_imported_lineage_stays_connected(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """An imported fork names its imported parent by id and file."""
    root = write_project_session(
        config_home, conversation(3, session_id=FIRST_SESSION_ID), FIRST_SESSION_ID
    )
    made = write_child(fork.plan_fork(root, config_home.where), config_home.where)
    child = locate.session_file(made.file)
    found = import_bundle(write_bundle(config_home, root, child), second_home)
    rows = LineageFinder(second_home.where).find_lineage(found[1].receipt.file)
    assert [(row.session_id, row.status, row.kind) for row in rows] == [
        (FIRST_SESSION_ID, "present", "original"),
        (made.session_id, "present", "fork"),
    ]
    first = orjson.loads(Path(found[1].receipt.file).read_bytes().splitlines()[0])[
        "continue_metadata"
    ]
    assert first["parent_session_file"] == found[0].receipt.file


def test_an_import_uses_a_new_id_if_the_old_one_exists(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """If a session's id exists already, the session is imported with a new id.

    The session's child refers to the new id, and the existing session is unchanged.
    """
    root = write_project_session(
        config_home, conversation(3, session_id=FIRST_SESSION_ID), FIRST_SESSION_ID
    )
    made = write_child(fork.plan_fork(root, config_home.where), config_home.where)
    taken = Path(
        write_project_session(
            second_home, conversation(2, session_id=FIRST_SESSION_ID), FIRST_SESSION_ID
        ).path
    )
    before = taken.read_bytes()
    first, second = import_bundle(
        write_bundle(config_home, root, locate.session_file(made.file)), second_home
    )
    assert taken.read_bytes() == before
    assert first.session_id != FIRST_SESSION_ID
    assert second.session_id == made.session_id
    assert FIRST_SESSION_ID.encode() not in Path(first.receipt.file).read_bytes()
    assert FIRST_SESSION_ID.encode() not in Path(second.receipt.file).read_bytes()
    rows = LineageFinder(second_home.where).find_lineage(second.receipt.file)
    assert [row.session_id for row in rows] == [first.session_id, second.session_id]


def test_importing_a_bundle_twice_changes_nothing(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """A second import of a bundle finds the existing session. With ``force``, it makes a new session."""
    session = write_project_session(
        config_home, conversation(3, session_id=FIRST_SESSION_ID), FIRST_SESSION_ID
    )
    path = write_bundle(config_home, session)
    (first,) = import_bundle(path, second_home)
    (again,) = import_bundle(path, second_home)
    assert (again.existed_before, again.session_id, again.receipt.written) == (
        True,
        FIRST_SESSION_ID,
        False,
    )
    (forced,) = import_bundle(path, second_home, force=True)
    assert (forced.existed_before, forced.receipt.written) == (False, True)
    assert forced.session_id != first.session_id
    assert len(locate.all_sessions(second_home.where)) == 2


def test_an_import_of_conversations_makes_new_sessions(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """Sessions that are imported as conversations get new ids and stay linked as parent and child.

    A second import finds these sessions.
    """
    root = write_project_session(
        config_home, conversation(3, session_id=FIRST_SESSION_ID), FIRST_SESSION_ID
    )
    made = write_child(fork.plan_fork(root, config_home.where), config_home.where)
    path = write_bundle(config_home, root, locate.session_file(made.file))
    first, second = import_bundle(path, second_home, is_whole=False)
    assert {first.session_id, second.session_id}.isdisjoint({FIRST_SESSION_ID, made.session_id})
    rows = LineageFinder(second_home.where).find_lineage(second.receipt.file)
    assert [row.session_id for row in rows] == [first.session_id, second.session_id]
    again = import_bundle(path, second_home, is_whole=False)
    assert [came.session_id for came in again] == [first.session_id, second.session_id]
    assert [came.existed_before for came in again] == [True, True]


def test_a_dry_run_of_an_import_writes_nothing(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """A dry run writes no session, whether it imports whole sessions or conversations."""
    session = write_project_session(
        config_home, conversation(3, session_id=FIRST_SESSION_ID), FIRST_SESSION_ID
    )
    path = write_bundle(config_home, session)
    for as_it_was in (True, False):
        (came,) = import_bundle(path, second_home, is_whole=as_it_was, dry_run=True)
        assert not came.receipt.written
    assert locate.all_sessions(second_home.where) == []
    assert not (second_home.config / "projects").exists()


def test_a_failed_session_cancels_the_whole_import(
    config_home: ConfigHome, second_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one session of a bundle fails, none of its sessions are imported."""
    one = write_project_session(config_home, make_session_records(), FIRST_SESSION_ID)
    write_sidecars(one)
    two = write_project_session(
        config_home, conversation(2, session_id=session_id(2)), session_id(2)
    )
    path = write_bundle(config_home, one, two)

    def fail_import_of_second_session(plan: ChildPlan, where: Where, *, dry_run: bool) -> Receipt:
        if plan.draft.session_id == two.session_id:
            raise CheckFailed("no", "no")
        return write_if_worthwhile(plan, where, dry_run=dry_run)

    monkeypatch.setattr(verb_caller, "write_if_worthwhile", fail_import_of_second_session)
    with pytest.raises(CheckFailed):
        import_bundle(path, second_home)
    assert [p for p in (second_home.config / "projects").rglob("*") if p.is_file()] == []
    assert not [
        name for name in os.listdir(second_home.config / "resume-hooks") if name.endswith(".tmp")
    ]


def test_a_redacted_bundle_has_no_secrets(config_home: ConfigHome) -> None:
    """A redacted bundle contains no secrets in records, titles, outputs or sub-agents' transcripts.

    The removed secrets are counted, and the bundle says that it is redacted.
    """
    records = [
        user(f"use {SECRET_TOKEN} please", uuid="a", session_id=FIRST_SESSION_ID),
        tool_use(
            "t1",
            uuid="b",
            parent="a",
            ts=1,
            session_id=FIRST_SESSION_ID,
            name="Bash",
            tool_input={"command": f"x {SECRET_TOKEN}"},
        ),
        custom_title(f"with {SECRET_TOKEN}", session_id=FIRST_SESSION_ID),
    ]
    session = write_project_session(config_home, records, FIRST_SESSION_ID)
    own = write_sidecars(session)
    (own / "tool-results" / "out.txt").write_text(f"it is\n{SECRET_TOKEN}\n")
    (own / "subagents" / "agent-a1.jsonl").write_bytes(
        session_bytes([user(SECRET_TOKEN, uuid="x", session_id=FIRST_SESSION_ID)])
    )
    taken = BundleRedactor(Redactor())
    content = b"".join(export_bundle([session], config_home.where, taken))
    assert SECRET_TOKEN.encode() not in content
    assert taken.counts_by_kind.total() == 6
    assert orjson.loads(content)["redacted"] is True


def make_text_replacer(old_text: bytes, new_text: bytes) -> Callable[[bytes], bytes]:
    """Return a function that replaces a text in a bundle."""
    return lambda content: content.replace(old_text, new_text, 1)


def make_row_remover(text: bytes) -> Callable[[bytes], bytes]:
    """Return a function that removes a bundle's rows that contain a text."""
    return lambda content: b"".join(
        row for row in content.splitlines(keepends=True) if text not in row
    )


def repeat_session(content: bytes) -> bytes:
    """Return the content of a bundle with its session repeated."""
    rows = content.splitlines(keepends=True)
    return b"".join(rows[:-1]).removesuffix(b"\n") + b",\n" + b"".join(rows[1:])


DAMAGE_FUNCTIONS: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda content: content[:-3],
    "half": lambda content: content[: len(content) // 2],
    "a record less": make_row_remover(b"fix the parser"),
    "a record changed": make_text_replacer(b"fix the parser", b"fix the lexer!"),
    "newer": make_text_replacer(b'bundle":2', b'bundle":3'),
    "more behind": lambda content: content + b"{}\n",
    "an id that is a path": lambda content: content.replace(
        FIRST_SESSION_ID.encode(), b"../" + FIRST_SESSION_ID.encode()[3:]
    ),
    # Of the bundle, only the first and the last row are kept.
    "no sessions": lambda content: re.sub(rb"(?s)\n.*\n(?=.)", b"\n", content),
    "written anew": lambda content: orjson.dumps(orjson.loads(content), option=orjson.OPT_INDENT_2),
    "twice the same": repeat_session,
    "a number for a title": make_text_replacer(b'"title":"Parser"', b'"title":7'),
    "another title": make_text_replacer(b'"title":"Parser"', b'"title":"Larser"'),
    "another folder": make_text_replacer(b'"cwd":"/', b'"cwd":"/x'),
    "a file changed": make_text_replacer(b"long output", b"lung output"),
    "a file elsewhere": make_text_replacer(b"tool-results/out.txt", b"tool-results/oot.txt"),
    "a file less": make_row_remover(b"tool-results/out.txt"),
    "fewer left out": make_text_replacer(b'"left_out":0', b'"left_out":1'),
    "no seal": lambda content: re.sub(rb',"seal":"[0-9a-f]{64}"', b"", content),
}
"""Functions that damage the content of a bundle, by the name of the damage."""


@pytest.mark.parametrize("damage", DAMAGE_FUNCTIONS)
def test_a_damaged_bundle_is_refused(
    damage: str, config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """A damaged bundle is refused with ``ImportFailed``, and no session is written."""
    session = write_project_session(config_home, make_session_records(), FIRST_SESSION_ID)
    write_sidecars(session)
    path = write_bundle(config_home, session)
    damaged = DAMAGE_FUNCTIONS[damage](path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    with pytest.raises(ImportFailed):
        import_bundle(path, second_home)
    assert locate.all_sessions(second_home.where) == []


@pytest.mark.parametrize(
    "invalid_path",
    ["../../evil.txt", "tool-results/../x", "/etc/x", "tool-results/.hidden", "subagents/evil.jsonl", "other/x", "",
     "tool-results/a/b", "memory/x"],
)  # fmt: skip
def test_a_file_with_an_invalid_path_is_not_imported(
    invalid_path: str,
    config_home: ConfigHome,
    second_home: ConfigHome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file in a bundle is not written if its path is outside the expected folders."""
    session = write_project_session(config_home, make_session_records(), FIRST_SESSION_ID)
    write_sidecars(session)
    path = write_bundle(config_home, session)
    monkeypatch.setattr(BundleSeal, "seal_checksums", lambda _, sums: sums)
    path.write_bytes(path.read_bytes().replace(b"tool-results/out.txt", invalid_path.encode()))
    (came,) = import_bundle(path, second_home)
    own = Path(came.receipt.file).with_suffix("")
    names = sorted(str(p.relative_to(own)) for p in own.rglob("*") if p.is_file())
    assert names == [
        "subagents/agent-a1.jsonl",
        "subagents/agent-a1.meta.json",
        "tool-results/raw.bin",
    ]
    assert not list(second_home.root.rglob("evil*"))


def test_a_session_without_a_conversation_is_not_imported(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """A session without a conversation is refused with ``NotATranscript``."""
    session = write_project_session(
        config_home, [custom_title("x", session_id=FIRST_SESSION_ID)], FIRST_SESSION_ID
    )
    with pytest.raises(NotATranscript):
        import_bundle(write_bundle(config_home, session), second_home, is_whole=False)


@pytest.mark.parametrize("path", corpus_sessions(), ids=lambda path: path.stem[:8])
def test_every_session_of_the_corpus_survives_an_import(
    path: Path, config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """A real session that is exported and imported has the same records and the same live chain as before."""
    folder = config_home.config / "projects" / path.parent.name
    folder.mkdir(parents=True)
    copy = Path(
        shutil.copyfile(
            path, folder / (path.name if len(path.stem) == 36 else f"{FIRST_SESSION_ID}.jsonl")
        )
    )
    session = locate.session_file(str(copy))
    (came,) = import_bundle(write_bundle(config_home, session), second_home)
    old, new = scan_transcript(str(copy)), scan_transcript(came.receipt.file)
    assert (new.line_count, [n.uuid for n in new.chain]) == (
        old.line_count,
        [n.uuid for n in old.chain],
    )
    assert [n.line_number for n in new.nodes] == [n.line_number for n in old.nodes]


def test_an_import_killed_at_any_step_is_completed_by_the_next(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """If an import is killed at any step, the next import makes the complete session.

    No other files are left.
    """
    session = write_project_session(
        config_home, conversation(2, session_id=FIRST_SESSION_ID), FIRST_SESSION_ID
    )
    outputs = Path(session.path).with_suffix("") / "tool-results"
    outputs.mkdir(parents=True)
    for name in ("one", "two"):
        (outputs / name).write_bytes(b"long output")
    bundle = write_bundle(config_home, session)
    home = other_home(tmp_path)

    def prepare_import() -> Callable[[], object]:
        shutil.rmtree(home.root)
        home.root.mkdir()
        return lambda: import_bundle(bundle, home)

    folder = home.config / "projects" / project_key(os.path.realpath(home.root / "work"))
    for _ in kill_before_each_change(prepare_import):
        import_bundle(bundle, home)
        files = sorted(
            str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
        )
        # Only a later command removes these leftovers.
        files = [name for name in files if not name.startswith(".resume-hooks-")]
        assert files == sorted(
            [
                f"{FIRST_SESSION_ID}.jsonl",
                f"{FIRST_SESSION_ID}/tool-results/one",
                f"{FIRST_SESSION_ID}/tool-results/two",
            ]
        )


def test_simultaneous_imports_make_one_session(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """If several processes import a bundle at the same time, one makes a session, and the others find it."""
    session = locate.session_file(
        write_session(
            config_home.project(), FIRST_SESSION_ID, conversation(2, session_id=FIRST_SESSION_ID)
        )
    )
    path = write_bundle(config_home, session)
    for whole, made in ((True, 1), (False, 2)):
        with ThreadPoolExecutor(4) as threads:
            runs = [
                threads.submit(import_bundle, path, second_home, is_whole=whole) for _ in range(4)
            ]
        assert sorted(came.existed_before for run in runs for came in run.result()) == [
            False,
            True,
            True,
            True,
        ]
        assert len([*second_home.config.glob("projects/*/*.jsonl")]) == made


def test_a_repeated_import_finds_the_session_with_the_new_id(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """A second import finds the session that the first import stored with a new id.

    With ``force``, it makes a new session.
    """
    session = locate.session_file(
        write_session(
            config_home.project(), FIRST_SESSION_ID, conversation(2, session_id=FIRST_SESSION_ID)
        )
    )
    path = write_bundle(config_home, session)
    write_session(
        second_home.project("/elsewhere"),
        FIRST_SESSION_ID,
        conversation(5, session_id=FIRST_SESSION_ID),
    )
    (first,) = import_bundle(path, second_home)
    (again,) = import_bundle(path, second_home)
    assert (first.existed_before, again.existed_before, again.session_id) == (
        False,
        True,
        first.session_id,
    )
    assert first.session_id != FIRST_SESSION_ID
    (forced,) = import_bundle(path, second_home, force=True)
    assert (forced.existed_before, forced.session_id == first.session_id) == (False, False)


def test_an_imported_child_is_recorded_as_an_import(
    config_home: ConfigHome, second_home: ConfigHome
) -> None:
    """An imported child is recorded as an import, even if the bundle records it as made by ``back``."""
    root = write_project_session(
        config_home, conversation(3, session_id=FIRST_SESSION_ID), FIRST_SESSION_ID
    )
    made = write_child(fork.plan_fork(root, config_home.where), config_home.where)
    path = write_bundle(config_home, root, locate.session_file(made.file))
    spec, caller = ImportSpec(str(second_home.root)), Caller(second_home.where)
    with unpack_bundle(str(path), second_home.where) as packed:
        named = [each._replace(head=each.head._replace(kind="back")) for each in packed]
        _, child = import_sessions(named, str(path), spec, caller)
    (link,) = [row for row in read_links(second_home.where) if row.child_id == child.session_id]
    assert link.kind == "import"
