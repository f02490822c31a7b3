"""Tests that the plugin and the real clients agree on the titles and folders of sessions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from resume_hooks.paths import PROJECT_FOLDER_VARIABLE, Where, project_folder_names
from resume_hooks.transcripts.head_tail import HeadTail
from tests.builders import (
    Record,
    conversation,
    custom_title,
    last_prompt,
    session_bytes,
    session_id,
)
from tests.e2e.harness.client import RECENT_VERSIONS, ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi

CUSTOM_TITLE_RECORD, AI_TITLE_RECORD = (
    custom_title("CUSTOM"),
    {"type": "ai-title", "aiTitle": "GENERATED"},
)
SUMMARY_RECORD = {"type": "summary", "summary": "SUMMED", "leafUuid": "leaf"}


def title_of_installed_session(home: ClientHome, number: int, *further_records: Record) -> str:
    """Write a session with the prompt ``FIRST <number>`` and ``further_records``.

    Return the title that the plugin gives it.
    """
    own = session_id(number)
    talk = conversation(2, session_id=own, prefix=f"s{number}-")
    talk[0]["message"]["content"] = f"FIRST {number}"
    books = [
        {**record, "sessionId": own}
        for record in (*further_records, last_prompt(f"s{number}-3", f"LAST {number}"))
    ]
    books = [
        {**record, "leafUuid": f"s{number}-3"} if "leafUuid" in record else record
        for record in books
    ]
    return HeadTail(
        str(home.install_session(session_bytes([*talk, *books]), own, set_cwd=True))
    ).title


@pytest.mark.wide
@pytest.mark.parametrize(
    ("records", "shown_title"),
    [
        ([CUSTOM_TITLE_RECORD, AI_TITLE_RECORD, SUMMARY_RECORD], "CUSTOM"),
        ([AI_TITLE_RECORD, SUMMARY_RECORD], "GENERATED"),
        ([SUMMARY_RECORD], "SUMMED"),
        ([], "LAST 1"),
    ],
)
def test_titles_agree_with_the_clients_picker(
    every_client: ClientVersion,
    home: ClientHome,
    api: MockApi,
    records: Sequence[Record],
    shown_title: str,
) -> None:
    """The plugin and the client's picker show the same title for a session.

    Both prefer the custom title, then the generated title, then the summary. If a session has none
    of these, the client shows the last prompt, but the plugin shows the first prompt, which never
    changes.
    """
    ours = title_of_installed_session(home, 1, *records)
    with Tui(every_client, home, api) as terminal:
        terminal.start()
        terminal.wait_until_idle()
        terminal.submit("/resume")
        terminal.wait_for(shown_title)
    assert ours == (shown_title if records else "FIRST 1")


@pytest.mark.wide
@pytest.mark.parametrize("variable_value", ["Mine_1", "a/b", "nul", "x" * 65, "", "x" * 64, "."])
def test_each_client_writes_to_the_expected_folder(
    every_client: ClientVersion, home: ClientHome, api: MockApi, variable_value: str
) -> None:
    """The newest client writes its sessions to the folder that CLAUDE_CODE_PROJECT_DIR_NAME names.

    The variable must be a plain name, without slashes. Older clients ignore it.
    """
    environ = {PROJECT_FOLDER_VARIABLE: variable_value}
    run_print(every_client, home, api, "hello", extra_env=environ)
    (written,) = (home.config / "projects").iterdir()
    known = environ if every_client.version in RECENT_VERSIONS else {}
    assert written.name == project_folder_names(str(home.cwd), Where(home.env(known)))[0]


def test_the_variable_is_ignored_without_a_config_folder(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Without CLAUDE_CONFIG_DIR, the client and the plugin ignore CLAUDE_CODE_PROJECT_DIR_NAME."""
    without = ClientVersion(client.version, ("env", "-u", "CLAUDE_CONFIG_DIR", *client.command))
    run_print(without, home, api, "hello", extra_env={PROJECT_FOLDER_VARIABLE: "Mine"})
    (written,) = (home.config / "projects").iterdir()
    assert [written.name] == project_folder_names(
        str(home.cwd), Where({PROJECT_FOLDER_VARIABLE: "Mine", "HOME": str(home.root)})
    )


def test_sessions_from_before_the_variable_are_found(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Sessions that were written before CLAUDE_CODE_PROJECT_DIR_NAME was set are still found.

    They are in the folder whose name comes from the project's path. Both the newest client and the
    plugin find them.
    """
    title_of_installed_session(home, 1)
    done = run_print(
        client,
        home,
        api,
        "go on",
        resume=session_id(1),
        extra_env={PROJECT_FOLDER_VARIABLE: "Mine"},
    )
    assert (done.returncode, done.session_id) == (0, session_id(1))
    assert home.project_folder.name in project_folder_names(
        str(home.cwd), Where(home.env({PROJECT_FOLDER_VARIABLE: "Mine"}))
    )
