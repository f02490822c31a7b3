"""The lists and folders of real clients, which our listings and locators follow."""

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
from tests.e2e.harness.client import RECENT, ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi

CUSTOM, AI = custom_title("CUSTOM"), {"type": "ai-title", "aiTitle": "GENERATED"}
SUMMARY = {"type": "summary", "summary": "SUMMED", "leafUuid": "leaf"}


def install(home: ClientHome, number: int, *more: Record) -> str:
    """A session with its first prompt ``FIRST n`` and these records.

    The title that we show for it.
    """
    own = session_id(number)
    talk = conversation(2, session_id=own, prefix=f"s{number}-")
    talk[0]["message"]["content"] = f"FIRST {number}"
    books = [
        {**record, "sessionId": own}
        for record in (*more, last_prompt(f"s{number}-3", f"LAST {number}"))
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
    ("records", "shown"),
    [
        ([CUSTOM, AI, SUMMARY], "CUSTOM"),
        ([AI, SUMMARY], "GENERATED"),
        ([SUMMARY], "SUMMED"),
        ([], "LAST 1"),
    ],
)
def test_the_order_of_titles(
    every_client: ClientVersion,
    home: ClientHome,
    api: MockApi,
    records: Sequence[Record],
    shown: str,
) -> None:
    """Custom, generated, summary, as the clients' own pickers have it.

    Of a session without any the client shows the last prompt: ours stays with the first, for a
    title that changes with each prompt would name nothing.
    """
    ours = install(home, 1, *records)
    with Tui(every_client, home, api) as terminal:
        terminal.start()
        terminal.wait_idle()
        terminal.submit("/resume")
        terminal.wait_for(shown)
    assert ours == (shown if records else "FIRST 1")


@pytest.mark.wide
@pytest.mark.parametrize("name", ["Mine_1", "a/b", "nul", "x" * 65, "", "x" * 64, "."])
def test_the_folder_that_a_variable_names(
    every_client: ClientVersion, home: ClientHome, api: MockApi, name: str
) -> None:
    """The newest client writes where the variable says, if that is a plain name.

    The older ones don't know it.
    """
    environ = {PROJECT_FOLDER_VARIABLE: name}
    run_print(every_client, home, api, "hello", extra_env=environ)
    (written,) = (home.config / "projects").iterdir()
    known = environ if every_client.version in RECENT else {}
    assert written.name == project_folder_names(str(home.cwd), Where(home.env(known)))[0]


def test_no_folder_is_named_without_a_config_folder(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """The variable counts next to ``CLAUDE_CONFIG_DIR`` alone."""
    without = ClientVersion(client.version, ("env", "-u", "CLAUDE_CONFIG_DIR", *client.command))
    run_print(without, home, api, "hello", extra_env={PROJECT_FOLDER_VARIABLE: "Mine"})
    (written,) = (home.config / "projects").iterdir()
    assert [written.name] == project_folder_names(
        str(home.cwd), Where({PROJECT_FOLDER_VARIABLE: "Mine", "HOME": str(home.root)})
    )


def test_sessions_from_before_the_variable(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """The newest client still finds them in the folder of the path, as our locators do."""
    install(home, 1)
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
