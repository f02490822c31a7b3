"""Tests of renamed, deleted and restored sessions in the real client.

The tests check the client's picker, its ``/resume`` and its requests.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from resume_hooks.archive.vault import delete, locate_archived, restore, trash
from resume_hooks.sessions import locate, rename
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.transcripts.head_tail import HeadTail
from tests.builders import assistant, session_bytes, session_id, user
from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import model_that_waits_for_removal

FIRST_ID, SECOND_ID = session_id(1), session_id(2)
DAY_AGO = time.time() - 24 * 60 * 60


def find_trash_entry(locator: str, home: ClientHome) -> ArchivedSession:
    """Return the session's entry in the trash."""
    where = home.where
    return locate_archived.find_archived(locator, where, trash.list_trashed_sessions(where))


def write_session_with_word(
    home: ClientHome, session_id: str, word: str, version: ClientVersion
) -> locate.SessionFile:
    """Write a session of this project with messages from yesterday that contain ``word``."""
    extra: dict[str, Any] = {
        "session_id": session_id,
        "cwd": str(home.cwd),
        "version": version.version,
    }
    records = [user(f"remember {word}", uuid=f"{session_id[:8]}-u", **extra)]
    records += [
        assistant(
            f"I keep {word}",
            uuid=f"{session_id[:8]}-a",
            parent=f"{session_id[:8]}-u",
            ts=1,
            **extra,
        )
    ]
    path = home.install_session(session_bytes(records), session_id)
    os.utime(path, (DAY_AGO, DAY_AGO))
    return locate.session_file(str(path))


def picker_text(tui: Tui) -> str:
    """Open the client's picker, and return the text that the screen shows."""
    tui.type("/resume")
    # As long as the menu of commands is not shown, the client may treat Enter as part of the typed text.
    tui.wait_for("/resume .*Resume")
    tui.wait_until_idle()
    tui.key("Enter")
    tui.wait_for("Resume [Ss]ession")
    tui.wait_until_idle()
    shown = tui.text()
    tui.key("Escape")
    tui.wait_until_idle()
    return shown


def resumed_messages(
    version: ClientVersion, home: ClientHome, api: MockApi, session_id: str
) -> list[Any]:
    """Resume a session and return the messages of the client's request.

    Afterwards, the session's file has its earlier content again.
    """
    path = home.project_folder / f"{session_id}.jsonl"
    before = path.read_bytes()
    api.clear_requests()
    run_print(version, home, api, "go on", resume=session_id)
    path.write_bytes(before)
    os.utime(path, (DAY_AGO, DAY_AGO))
    return list(api.main_requests()[-1]["messages"])


def test_the_picker_and_resume_find_a_new_title(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A running client's picker shows a new title, and ``/resume <title>`` opens that session."""
    renamed, other = (
        write_session_with_word(home, number, word, every_client)
        for number, word in ((FIRST_ID, "ALPHA"), (SECOND_ID, "BETA"))
    )
    rename.write_label(rename.plan_title(other, "old title", home.where))
    with Tui(every_client, home, api) as tui:
        tui.start()
        assert "old title" in picker_text(tui)
        rename.write_label(rename.plan_title(renamed, "parser works", home.where))
        rename.write_label(rename.plan_title(other, "lexer works", home.where))
        shown = picker_text(tui)
        assert "parser works" in shown
        assert "lexer works" in shown
        assert "old title" not in shown
        tui.submit("/resume parser works")
        tui.wait_for("I keep ALPHA")
        tui.wait_until_idle()
        tui.submit("and now GAMMA")
        tui.wait_for("Mock reply")
    assert "ALPHA" in str(api.main_requests()[-1]["messages"])
    assert "BETA" not in str(api.main_requests()[-1]["messages"])


def test_the_screen_shows_the_new_name(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """If a session was renamed twice, the screen shows its second name and not its first."""
    session = write_session_with_word(home, FIRST_ID, "ALPHA", client)
    rename.write_label(rename.plan_title(session, "first name", home.where))
    rename.write_label(rename.plan_title(session, "second name", home.where))
    with Tui(client, home, api) as tui:
        tui.start(resume=FIRST_ID)
        tui.wait_for(r"── second name ─")
        assert "first name" not in tui.text()


def test_a_title_and_a_tag_do_not_change_requests(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A title and a tag do not change the request that the client sends when it resumes a session."""
    session = write_session_with_word(home, FIRST_ID, "ALPHA", every_client)
    before = resumed_messages(every_client, home, api, FIRST_ID)
    rename.write_label(rename.plan_title(session, "a title", home.where))
    rename.write_label(rename.plan_tag(session, "a-tag", home.where))
    assert _texts_of_messages(
        resumed_messages(every_client, home, api, FIRST_ID)
    ) == _texts_of_messages(before)


def test_a_rename_writes_the_records_of_the_client(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """``rename`` appends the same two records as the client's ``/rename``, byte for byte."""
    with Tui(client, home, api) as tui:
        tui.start()
        tui.submit("remember ALPHA")
        tui.wait_for("Mock reply 1")
        tui.wait_until_idle()
        (path,) = home.sessions()
        tui.submit("/rename the title")
        tui.wait_for("Session renamed")
        tui.wait_until_idle()
    theirs = [
        line
        for line in path.read_bytes().split(b"\n")
        if line[:14] in {b'{"type":"custo', b'{"type":"agent'}
    ]
    ours = write_session_with_word(home, FIRST_ID, "BETA", client)
    rename.write_label(rename.plan_title(ours, "the title", home.where, force=True))
    written = Path(ours.path).read_bytes().replace(FIRST_ID.encode(), path.stem.encode())
    assert written.endswith(b"\n".join([*theirs[:2], b""]))
    assert HeadTail(str(path)).agent_name == "the title"


def test_a_deleted_session_can_be_restored_to_the_picker(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """The client does not list or resume a deleted session until it is restored.

    The restored session's file and request are the same as before.
    """
    session, _ = (
        write_session_with_word(home, number, word, every_client)
        for number, word in ((FIRST_ID, "ALPHA"), (SECOND_ID, "BETA"))
    )
    before = resumed_messages(every_client, home, api, FIRST_ID)
    rename.write_label(rename.plan_title(session, "parser works", home.where))
    whole = Path(session.path).read_bytes()
    delete.move_to_trash(
        delete.plan_delete(locate.session_file(session.path), home.where), home.where
    )
    with Tui(every_client, home, api) as tui:
        tui.start()
        shown = picker_text(tui)
        assert "parser works" not in shown
        assert "BETA" in shown
        api.clear_requests()
        gone = run_print(every_client, home, api, "go on", resume=FIRST_ID)
        assert gone.returncode != 0
        assert not api.main_requests()
        restore.execute_restore_plan(
            restore.plan_restore(find_trash_entry("parser works", home), home.where), home.where
        )
        assert "parser works" in picker_text(tui)
    assert Path(session.path).read_bytes() == whole
    assert _texts_of_messages(
        resumed_messages(every_client, home, api, FIRST_ID)
    ) == _texts_of_messages(before)


def test_a_restored_old_session_survives_the_client_s_cleanup(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """The client's next cleanup does not delete a restored session, although the session is old.

    The same cleanup deletes another session of the same age.
    """
    session, expired = (
        write_session_with_word(home, number, word, client)
        for number, word in ((FIRST_ID, "ALPHA"), (SECOND_ID, "BETA"))
    )
    for path in (session.path, expired.path):
        os.utime(path, (DAY_AGO - 90 * 86_400, DAY_AGO - 90 * 86_400))
    delete.move_to_trash(
        delete.plan_delete(locate.session_file(session.path), home.where), home.where
    )
    restore.execute_restore_plan(
        restore.plan_restore(find_trash_entry(FIRST_ID, home), home.where), home.where
    )
    api.script = model_that_waits_for_removal(Path(expired.path))
    run_print(client, home, api, "hello")
    assert os.path.exists(session.path)
    assert not os.path.exists(expired.path)


def _texts_of_messages(messages: list[Any]) -> list[Any]:
    """Return the roles and texts of the messages, without the texts that the client adds at each start."""
    said = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [block.get("text", "") for block in blocks]
        said += [
            (message["role"], text) for text in texts if not text.startswith("<system-reminder>")
        ]
    return said
