"""Tests that sessions are archived before the client's own cleanup deletes them.

The archived sessions can be restored afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import settings
from resume_hooks.sessions import held_links
from resume_hooks.sessions.archived.manifest import archived_ids, find_archived
from tests.builders import (
    assistant,
    conversation,
    session_bytes,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.e2e.harness.client import (
    OLDEST_VERSION,
    ClientHome,
    ClientVersion,
    Tui,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import (
    ENGINE_ENV,
    data_of_verb,
    model_that_waits_for_removal,
    remove_module,
    text_of_request,
)
from tests.needs import one_in

DAY_SECONDS = 86_400
EXPIRED_AGE, EXPIRING_AGE = 40 * DAY_SECONDS, 25 * DAY_SECONDS
LONG_OUTPUT = "the long output of a tool " * 400
SEARCHED_WORD = "zirconium"
ENV_WITH_VAULT = ENGINE_ENV | {"RESUME_HOOKS_VAULT": "20G"}
"""An environment in which the user has already chosen to archive sessions, so no question appears.
"""


def turn_with_long_output(
    home: ClientHome, own_id: str, prefix: str, word: str
) -> list[dict[str, Any]]:
    """Return the records of a turn with a long tool output."""
    place: dict[str, Any] = {"session_id": own_id, "cwd": str(home.cwd)}
    return [
        user(f"read the file about {word}", uuid=f"{prefix}1", parent=None, **place),
        tool_use(
            f"toolu_{prefix}",
            uuid=f"{prefix}2",
            parent=f"{prefix}1",
            tool_input={"file_path": "/x"},
            **place,
        ),
        tool_result(
            f"toolu_{prefix}", LONG_OUTPUT, uuid=f"{prefix}3", parent=f"{prefix}2", **place
        ),
        assistant(
            f"It is all about {word}.",
            uuid=f"{prefix}4",
            parent=f"{prefix}3",
            tokens=20_000,
            **place,
        ),
    ]


def write_sidecars(home: ClientHome, session: Path) -> list[Path]:
    """Write the other files of a session: a tool's output, a sub-agent and a backup of a file."""
    own = session.with_suffix("")
    files = [
        own / "tool-results" / "out.txt",
        own / "subagents" / "agent-a1.jsonl",
        home.config / "file-history" / session.stem / "0123456789abcdef@v1",
    ]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_bytes(b'{"of":"%s"}\n' % file.name.encode())
    return files


def set_file_age(age_in_seconds: float, *paths: Path) -> None:
    """Set the age of the files to ``age_in_seconds``. A backup's folder gets the same age as the backup."""
    for path in paths:
        for each in [path, *([path.parent] if "file-history" in path.parts else [])]:
            os.utime(each, (time.time() - age_in_seconds,) * 2)


def test_archived_ancestors_stay_usable_after_the_cleanup(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """``lineage``, ``search``, ``read`` and ``untrim`` still work after the cleanup deleted ancestors.

    ``restore`` writes an ancestor and its files back, and the client can resume the ancestor.
    """
    folder = home.project_folder
    root = Path(
        write_session(
            folder, session_id(1), turn_with_long_output(home, session_id(1), "a", SEARCHED_WORD)
        )
    )
    files = write_sidecars(home, root)
    handoff = Path(data_of_verb(home, "handoff", root.stem, "--next-step", "go on")["file"])
    last = json.loads(handoff.read_bytes().splitlines()[2])["uuid"]
    more = turn_with_long_output(home, handoff.stem, "b", "quartz")
    with handoff.open("ab") as stream:
        stream.write(session_bytes([more[0] | {"parentUuid": last}, *more[1:]]))
    trimmed = Path(
        data_of_verb(home, "trim", handoff.stem, "--threshold", "200", "--keep-recent", "0")["file"]
    )
    assert archived_ids(home.where) == sorted([root.stem, handoff.stem])

    old = Path(write_session(folder, session_id(2), conversation(2, session_id=session_id(2))))
    soon = Path(write_session(folder, session_id(3), conversation(2, session_id=session_id(3))))
    young = Path(write_session(folder, session_id(4), conversation(2, session_id=session_id(4))))
    (output, _, backup) = write_sidecars(home, young)
    other = Path(
        write_session(
            folder.parent / "-other", session_id(5), conversation(2, session_id=session_id(5))
        )
    )
    set_file_age(EXPIRED_AGE, root, *files, handoff, old, other, output, backup)
    set_file_age(EXPIRING_AGE, soon)
    was = {path: path.read_bytes() for path in (root, handoff, *files)}

    gone = (root, handoff, old, other, output, backup, *files)
    api.script = model_that_waits_for_removal(*gone)
    done = run_print(
        client, home, api, "hello", plugin_dir=plugin, extra_env=ENGINE_ENV, timeout=90
    )
    assert done.returncode == 0, done.stderr
    assert "resume-hooks" not in done.text + done.stderr
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in (soon, young, trimmed))
    assert set(archived_ids(home.where)) >= {
        path.stem for path in (root, handoff, old, soon, young, other)
    }
    kept = find_archived(young.stem, home.where)
    assert kept
    assert {Path(part.place).name for part in kept.parts} >= {output.name, backup.name}

    rows = data_of_verb(home, "lineage", trimmed.stem)["rows"]
    assert [(row["session_id"], row["status"]) for row in rows] == [
        (root.stem, "kept"),
        (handoff.stem, "kept"),
        (trimmed.stem, "present"),
    ]
    assert (
        data_of_verb(home, "search", SEARCHED_WORD, "--all")["hits"][0]["session_id"] == root.stem
    )
    assert SEARCHED_WORD in json.dumps(data_of_verb(home, "read", f"{root.stem}:3"))
    untrimmed = Path(data_of_verb(home, "untrim", trimmed.stem, "--all")["file"])
    assert LONG_OUTPUT.encode() in untrimmed.read_bytes()

    data_of_verb(home, "restore", root.stem)
    assert {path: path.read_bytes() for path in (root, *files)} == {
        path: was[path] for path in (root, *files)
    }
    assert time.time() - root.stat().st_mtime < 30 * DAY_SECONDS
    api.clear_requests()
    api.script = ()
    done = run_print(
        client, home, api, "and now?", resume=root.stem, plugin_dir=plugin, extra_env=ENGINE_ENV
    )
    assert done.returncode == 0, done.stderr
    assert SEARCHED_WORD in text_of_request(api.main_requests()[-1])


def test_a_start_announces_copies_of_expiring_sessions(tui: Tui, plugin: Path) -> None:
    """The first start shows a line about the copies of sessions that will expire soon.

    No question appears, the next prompt is sent completely, and a second start shows no line.
    """
    home, where = tui.home, tui.home.where
    soon = Path(
        write_session(home.project_folder, session_id(3), conversation(2, session_id=session_id(3)))
    )
    set_file_age(EXPIRING_AGE, soon)
    tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV)
    tui.wait_for(r"will\s+keep\s+copies\s+of\s+these\s+sessions")
    assert wait_until(Path(held_links.links_folder(where), soon.parent.name, soon.name).exists)
    tui.submit("/lineage")
    tui.wait_until_idle(4)
    tui.submit("1 more fix")
    tui.wait_for("Mock reply 1")
    assert "1 more fix" in text_of_request(tui.api.main_requests()[-1])
    assert settings.load_settings(where)["vault"].source == "default"
    assert not archived_ids(where)
    tui.close()
    with Tui(tui.version, home, tui.api) as other:
        other.start(plugin_dir=plugin, extra_env=ENGINE_ENV)
        assert "resume-hooks:" not in other.text()


def test_a_start_reports_the_archived_sessions_once(tui: Tui, plugin: Path) -> None:
    """Without the module, a start archives sessions that expire soon and reports them once."""
    remove_module(plugin)
    soon = Path(
        write_session(
            tui.home.project_folder, session_id(3), conversation(2, session_id=session_id(3))
        )
    )
    set_file_age(EXPIRING_AGE, soon)
    tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV)
    tui.wait_for("archived 1 session that the client will soon delete")
    assert "vault off" in " ".join(tui.text().split())
    tui.close()
    with Tui(tui.version, tui.home, tui.api) as other:
        other.start(plugin_dir=plugin, extra_env=ENGINE_ENV)
        assert "resume-hooks:" not in other.text()
    assert archived_ids(tui.home.where) == [soon.stem]


@pytest.mark.wide
def test_an_older_client_archives_expiring_sessions(
    home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """If an older client runs without a screen, it archives sessions that expire soon.

    The second run archives the sessions for which the first run had no time.
    """
    soon = Path(
        write_session(home.project_folder, session_id(3), conversation(2, session_id=session_id(3)))
    )
    young = Path(
        write_session(home.project_folder, session_id(4), conversation(2, session_id=session_id(4)))
    )
    files = write_sidecars(home, young)
    set_file_age(EXPIRING_AGE, soon, *files)
    for _ in range(2):
        done = run_print(
            find_client(OLDEST_VERSION), home, api, "hello", plugin_dir=plugin, extra_env=ENGINE_ENV
        )
        assert done.returncode == 0, done.stderr
    assert archived_ids(home.where) == [soon.stem, young.stem]


@pytest.mark.parametrize("is_folder_deleted", one_in(2, [True, False]))
def test_a_session_deleted_early_is_restored(
    tui: Tui, plugin: Path, is_folder_deleted: bool
) -> None:
    """If two sessions were deleted before they were archived, the next start archives them.

    ``restore`` then writes them back. One of the sessions is new and has a tool output. The
    other one was open in the client. Hard links have preserved the files of both sessions.
    """
    home, where = tui.home, tui.home.where
    run_print(
        tui.version,
        home,
        tui.api,
        f"remember {SEARCHED_WORD}",
        plugin_dir=plugin,
        extra_env=ENGINE_ENV,
    )
    (early,) = home.sessions()
    output = early.with_suffix("") / "tool-results" / "out.txt"
    output.parent.mkdir(parents=True)
    output.write_text(LONG_OUTPUT)
    tui.start(plugin_dir=plugin, extra_env=ENV_WITH_VAULT)
    held = Path(held_links.links_folder(where), early.parent.name)
    assert wait_until((held / early.name).exists)
    tui.submit("hello there")
    tui.wait_for("Mock reply 2")
    tui.wait_until_idle()
    (own,) = set(home.sessions()) - {early}
    assert wait_until((held / own.name).exists), "linked as its first turn ended"
    tui.close()
    kept = {path: path.read_bytes() for path in (early, own, output)}
    for path in (early, own):
        path.unlink()
    if is_folder_deleted:
        shutil.rmtree(early.parent)
    with Tui(tui.version, home, tui.api) as other:
        other.start(plugin_dir=plugin, extra_env=ENV_WITH_VAULT)
        assert wait_until(lambda: {early.stem, own.stem} <= set(archived_ids(where)))
    for path in (early, own):
        data_of_verb(home, "restore", path.stem)
    assert {path: path.read_bytes() for path in kept} == kept
    tui.api.clear_requests()
    run_print(tui.version, home, tui.api, "go on", resume=early.stem)
    assert SEARCHED_WORD in text_of_request(tui.api.main_requests()[-1])
