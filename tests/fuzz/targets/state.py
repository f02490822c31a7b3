"""Fuzz targets for the state folder: any file in it may be an invalid note, link, setting or index."""

from __future__ import annotations

import json
import os
import shutil
import signal
import weakref
from pathlib import Path
from typing import Any

from resume_hooks import settings
from resume_hooks.archive.vault import restore, trash
from resume_hooks.errors import ResumeHooksError, WriteFailed
from resume_hooks.hooks import confirmations, hook_state, pending_handoff
from resume_hooks.paths import Where, is_session_id, read_json_object
from resume_hooks.search.index.connect import index_status, open_index
from resume_hooks.search.index.database import index_file_path
from resume_hooks.sessions import link_log
from resume_hooks.sessions.archived.layout import MANIFEST_NAME, path_in_config_home
from resume_hooks.storage.stored_settings import store_setting
from resume_hooks.system.claude_settings import MAX_RETENTION_DAYS, read_retention_days
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session
from tests.cli.fork_server import ForkServer
from tests.fuzz.draws import Draws
from tests.fuzz.material import SESSION_IDS
from tests.fuzz.targets.target import Target, TryCase, assert_expected_error
from tests.needs import REPO

CHILD_ID = session_id(7)
HANDOFF_LINK = link_log.Link(CHILD_ID, SESSION, "handoff", "2026-01-31T09:30:00.000Z")


def draw_note(draws: Draws, valid_fields: dict[str, Any]) -> bytes:
    """Return a note with some values replaced, removed or added, or return invalid bytes."""
    kind = draws.number_below(8)
    if kind == 7:
        return draws.take_bytes(60)
    if kind == 6:
        return (b"[" if draws.flip_coin() else b'{"a":') * 3_000
    made = dict(valid_fields)
    for _ in range(draws.number_below(4)):
        made[draws.pick((*valid_fields, draws.text()))] = draws.json()
    for _ in range(draws.number_below(2)):
        made.pop(draws.pick(tuple(valid_fields)), None)
    body = json.dumps(made).encode()
    return body[: draws.number_below(len(body) + 1)] if kind == 5 else body


def make_link_row_check(home: ConfigHome) -> TryCase:
    """Return a check that only valid rows of the log of links are read, and that a new link can be added."""
    file = Path(link_log.links_file(home.where))
    file.parent.mkdir(mode=0o700)

    def draw_row(draws: Draws) -> bytes:
        valid_fields = HANDOFF_LINK._asdict() | {
            "superseded_id": draws.pick(SESSION_IDS),
            "by": draws.pick(SESSION_IDS),
        }
        return draw_note(draws, valid_fields) + draws.pick((b"\n", b"\r\n", b"", b"\x00\n"))

    def try_case(draws: Draws) -> None:
        file.write_bytes(b"".join(draws.draw_list(6, lambda: draw_row(draws))))
        link_log.record_link(HANDOFF_LINK, home.where)
        found = link_log.read_links(home.where)
        assert found[-1] == HANDOFF_LINK
        assert all(is_session_id(each.child_id) and is_session_id(each.parent_id) for each in found)
        assert all(isinstance(each.kind + each.at, str) for each in found)
        assert all(map(is_session_id, link_log.read_successors(home.where)))

    return try_case


def make_settings_check(home: ConfigHome) -> TryCase:
    """Return a check that every setting has a value of its type, and that invalid values are reported.

    A file that is not ours is not overwritten.
    """
    file = Path(settings.settings_file(home.where))
    file.parent.mkdir(mode=0o700)
    kinds = {name: type(key.default) for name, key in settings.SETTING_DEFINITIONS.items()}

    def try_case(draws: Draws) -> None:
        valid_fields = {
            "version": 1,
            **{
                name: draws.pick((key.default, draws.json()))
                for name, key in settings.SETTING_DEFINITIONS.items()
            },
        }
        before = draw_note(draws, valid_fields)
        file.write_bytes(before)
        names = [
            draws.pick(tuple(settings.SETTING_DEFINITIONS)) for _ in range(draws.number_below(3))
        ]
        environ = {
            **home.environ,
            **{f"RESUME_HOOKS_{name.upper()}": draws.text() for name in names},
        }
        found = settings.load_settings(Where(environ))
        assert {name: type(each.value) for name, each in found.items()} == kinds
        assert all(
            isinstance(sentence, str)
            for sentence in settings.describe_invalid_settings(Where(environ))
        )
        try:
            store_setting("notice_percent", "70", home.where)
        except WriteFailed:
            assert file.read_bytes() == before
        else:
            kept = {
                name: value
                for name, value in _parse_object(before).items()
                if name != "notice_percent"
            }
            now = read_json_object(str(file))
            assert now["notice_percent"] == 70
            assert all(
                repr(now[name]) == repr(value) for name, value in kept.items() if name != "version"
            )
        assert [each.name for each in file.parent.iterdir()] == [file.name]

    return try_case


def _parse_object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def make_pending_note_check(home: ConfigHome) -> TryCase:
    """Return a check that notes with an invalid form are ignored.

    In a valid note, every field has its type.
    """
    folder = home.config / "resume-hooks" / "pending"
    folder.mkdir(parents=True, mode=0o700)
    project = home.project()
    child = project / f"{CHILD_ID}.jsonl"
    child.write_text("{}\n")
    handoff = pending_handoff.PendingHandoff(
        7, "", SESSION, CHILD_ID, str(child), 3, 2e9, "opening"
    )
    shapes: dict[str, dict[str, Any]] = {
        f"trim-{SESSION}.json": confirmations.StoredQuestion(SESSION, "all", 2e9)._asdict(),
        f"handoff-7-{CHILD_ID}.json": handoff._asdict(),
        "clear-7.json": {"session_id": SESSION, "at": 2e9},
        f"notice-{SESSION}.json": {"look": 1, "told": 2},
    }

    def try_case(draws: Draws) -> None:
        name = draws.pick(tuple(shapes))
        (folder / name).write_bytes(
            draw_note(draws, {"version": hook_state.NOTE_VERSION, **shapes[name]})
        )
        os.chmod(folder / name, draws.pick((0o600, 0o600, 0o600, 0o666)))
        assert isinstance(hook_state.read_note(name), dict)
        question = confirmations.find_question(SESSION)
        assert question is None or (
            question.session_id == SESSION and isinstance(question.is_open, bool)
        )
        for waiting in (
            pending_handoff.find_handoff_to_announce(str(project)),
            pending_handoff.consume_cleared_handoff(7, str(project), None),
        ):
            assert waiting is None or waiting.child_file == str(child)
        pending_handoff.consume_handoff_to_child(CHILD_ID)
        pending_handoff.consume_handoffs_of_parent(SESSION)
        assert child.read_text() == "{}\n"
        for left in folder.iterdir():
            left.unlink()

    return try_case


def make_trash_note_check(home: ConfigHome) -> TryCase:
    """Return a check that no manifest in the trash leads outside the folders of sessions.

    The folder of an unreadable manifest is reported as stray.
    """
    folder = home.config / "resume-hooks" / "trash" / SESSION / "2026-01-31T09-30-00.000Z"
    folder.mkdir(parents=True, mode=0o700)
    (folder / f"{SESSION}.jsonl").write_text("kept")
    precious = home.root / "precious.jsonl"
    precious.write_text("precious")
    homes = (str(home.config / "projects"), str(home.config / "file-history"))
    place = f"projects/-home-user-proj/{SESSION}.jsonl"
    steps = (
        "..",
        ".",
        "",
        "projects",
        "file-history",
        SESSION,
        f"{SESSION}.jsonl",
        "agent-x",
        "\x00",
        "/etc",
        "~",
    )

    def try_case(draws: Draws) -> None:
        where = (
            "/".join(draws.pick(steps) for _ in range(1 + draws.number_below(4)))
            if draws.flip_coin()
            else place
        )
        part = {
            "place": draws.pick((where, draws.text(), draws.json())),
            "files": 1,
            "size": 4,
            "sha256": draws.text(),
        }
        parts = [part, *draws.draw_list(2, lambda: {**part, "place": place})]
        texts = {name: draws.text() for name in ("title", "cwd", "ended", "deleted_at")}
        row = draw_note(
            draws, {"version": 1, "complete": draws.flip_coin(), **texts, "parts": parts}
        )
        (folder / MANIFEST_NAME).write_bytes(row)
        held = trash.list_trashed_sessions(home.where)
        assert len(held) + len(trash.list_stray_folders(home.where)) == 1
        for entry in held:
            assert all(
                path_in_config_home(each.place, home.where).startswith(homes)
                for each in entry.parts
            )
            try:
                decided = restore.plan_restore(entry, home.where)
            except ResumeHooksError as error:
                assert_expected_error(error)
            else:
                assert all(piece.target_path.startswith(homes) for piece in decided.files)
        (folder / MANIFEST_NAME).unlink()
        assert precious.read_text() == "precious"

    return try_case


def make_damaged_index_check(home: ConfigHome) -> TryCase:
    """Return a check that a search in a damaged index works or reports that a new index will be built.

    After such a report, the next search builds the index. Each case runs in its own process,
    because tantivy ends the process if one of its threads fails.
    """
    server = ForkServer(str(REPO / "src"), str(REPO))
    write_session(home.project(), SESSION, conversation(30))
    os.utime(home.project() / f"{SESSION}.jsonl", (1e9, 1e9))
    state = Path(home.where.state)
    with open_index(home.where):
        pass
    whole = {path: path.read_bytes() for path in sorted(state.rglob("*")) if path.is_file()}
    written = [path for path, raw in whole.items() if raw]

    def try_case(draws: Draws) -> None:
        shutil.rmtree(state)
        for path, left in whole.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(left)
        harmed = draws.pick((Path(index_file_path(home.where)), *written))
        raw = bytearray(whole[harmed])
        for _ in range(1 + draws.number_below(4)):
            start = draws.pick(
                (
                    draws.number_below(100),
                    draws.number_below(len(raw)),
                    draws.number_below(1 + len(raw) // 4_096) * 4_096,
                )
            )
            piece = draws.take_bytes(24) or bytes(200)
            raw[start : start + len(piece)] = piece
        harmed.write_bytes(
            bytes(raw[: len(raw) if draws.number_below(6) else draws.number_below(len(raw))])
        )
        assert index_status(home.where).state in {"ready", "missing", "damaged", "newer"}
        for codes in ({0, 1, -signal.SIGABRT}, {0, 1}, {0}):
            run = server.run(
                ("search", "prompt", "--all", "--json"), dict(home.environ), b"", str(home.root), 60
            )
            assert run.returncode in codes, run.stderr
        assert json.loads(run.stdout)["data"]["hits"]

    weakref.finalize(try_case, server.close)
    return try_case


def make_client_settings_check(home: ConfigHome) -> TryCase:
    """Return a check that values from the client's settings are valid, whatever the files contain."""
    project = home.root / "proj"
    (project / ".claude").mkdir(parents=True)
    places = (home.config / "settings.json", project / ".claude" / "settings.json")

    def try_case(draws: Draws) -> None:
        valid_fields = {
            "cleanupPeriodDays": 30,
            "env": {},
            "disableAllHooks": False,
            "enabledPlugins": {"resume-hooks@x": True},
        }
        draws.pick(places).write_bytes(draw_note(draws, valid_fields))
        days = read_retention_days(str(project), home.where)
        assert days is None or 1 <= days <= MAX_RETENTION_DAYS

    return try_case


TARGETS = (
    Target("links", 700, make_link_row_check),
    Target("settings", 600, make_settings_check),
    Target("pending notes", 700, make_pending_note_check),
    Target("trash notes", 500, make_trash_note_check),
    Target("index bytes", 80, make_damaged_index_check),
    Target("client settings", 400, make_client_settings_check),
)
