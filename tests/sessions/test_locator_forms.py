"""Tests of a locator's other forms, such as ``latest`` and ``#72``, and of their precedence.

Ids, id prefixes, paths and exact titles are tested in test_locate.py.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from resume_hooks.errors import AmbiguousLocator, ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import resolve_locator
from resume_hooks.sessions.locator_forms import MAX_SUGGESTED_SESSIONS, RESOLVERS, LocatorScope
from resume_hooks.sessions.session_files import SessionFile, session_file
from tests.builders import (
    CWD,
    ConfigHome,
    Record,
    conversation,
    custom_title,
    session_id,
    write_session,
)

PULL_REQUEST_URL = "https://github.com/entireio/git-sync/pull/72"


def write_numbered_talk(
    home: ConfigHome,
    session_number: int,
    *more_records: Record,
    cwd: str = CWD,
    turn_count: int = 2,
    **record_fields: Any,
) -> str:
    """Write a session and return its path. The higher the number is, the older the session is."""
    records = [
        {**record, "cwd": cwd, **record_fields}
        for record in conversation(turn_count, session_id=session_id(session_number))
    ]
    moment = time.time() - 60 * session_number
    return write_session(
        home.project(cwd), session_id(session_number), [*records, *more_records], mtime=moment
    )


def make_tag_record(tag: str) -> Record:
    """Return the record of a tag."""
    return {"type": "tag", "tag": tag}


def make_pull_request_record(pull_request_number: object, url: object = PULL_REQUEST_URL) -> Record:
    """Return the record of a pull request, as the client writes it."""
    return {
        "type": "pr-link",
        "prNumber": pull_request_number,
        "prUrl": url,
        "prRepository": "entireio/git-sync",
    }


def find_session_number(home: ConfigHome, locator: str, cwd: str = CWD, **environ: str) -> int:
    """Return the number of the session that a locator names."""
    return int(resolve_locator(locator, cwd, Where({**home.environ, **environ})).session_id[:8], 16)


class SessionToWrite(NamedTuple):
    """A session that a test writes.

    ``more_records`` has the records after the session's turns. ``cwd`` and ``fields`` apply to all its
    records.
    """

    session_number: int
    more_records: tuple[Record, ...]
    cwd: str
    fields: dict[str, Any]


def session_to_write(
    session_number: int, *more_records: Record, cwd: str = CWD, **fields: Any
) -> SessionToWrite:
    """Return the description of a session that a test writes."""
    return SessionToWrite(session_number, more_records, cwd, fields)


OTHER_FOLDER = "/elsewhere"
OTHER_PULL_REQUEST_URL = "https://github.com/a/b/pull/72"
PARSER_SESSIONS = [
    session_to_write(3, custom_title("Fix the parser"), cwd=OTHER_FOLDER),
    session_to_write(2, custom_title("Fix the parser again")),
    session_to_write(1, custom_title("Parser")),
]
NOT_FOUND_ERROR = (SessionNotFound, "")
NOT_IMPORTED_ERROR = (UsageError, "An address must be imported first")
LOCATOR_CASES: dict[
    str,
    tuple[
        list[SessionToWrite], dict[str | tuple[str, str], int | tuple[type[ResumeHooksError], str]]
    ],
] = {
    "latest counts back among what it may be: no helpers, nothing of another folder": (
        [
            session_to_write(1),
            session_to_write(2),
            session_to_write(3),
            session_to_write(0, entrypoint="sdk-cli"),
            session_to_write(9, cwd=OTHER_FOLDER),
        ],
        {
            "latest": 1,
            "LATEST": 1,
            "latest~": 2,
            "latest~0": 1,
            "latest~1": 2,
            "latest~2": 3,
            " latest ": 1,
        },
    ),
    "counting back too far says how many there are": (
        [session_to_write(1)],
        {
            "latest~1": (SessionNotFound, f"There is only 1 session in {CWD} to count back from"),
            ("latest~1", "/nowhere"): (SessionNotFound, "No session of /nowhere yet"),
        },
    ),
    "latest is always the word, whatever a session is called": (
        [
            session_to_write(1),
            session_to_write(2, custom_title("latest")),
            session_to_write(3, custom_title("latest~2")),
        ],
        {"latest": 1, "title:latest": 2, "title:latest~2": 3},
    ),
    "a tag, whatever its capitals; the last one counts; this project before all others": (
        [
            session_to_write(1, make_tag_record("old"), make_tag_record("Review")),
            session_to_write(2, make_tag_record("review"), cwd=OTHER_FOLDER),
        ],
        {
            "review": 1,
            "tag:REVIEW": 1,
            "Tag: review": 1,
            ("review", OTHER_FOLDER): 2,
            "old": NOT_FOUND_ERROR,
        },
    ),
    "a tag comes before a part of a title": (
        [
            session_to_write(1, custom_title("The parser at work")),
            session_to_write(2, make_tag_record("parser")),
        ],
        {"parser": 2},
    ),
    "a title comes before a tag": (
        [
            session_to_write(2, make_tag_record("parser")),
            session_to_write(3, custom_title("parser")),
        ],
        {"parser": 3, "tag:parser": 2},
    ),
    "any part of a title, whatever its capitals": (
        [
            session_to_write(1, custom_title("Fix the Parser at r\u00e9sum\u00e9")),
            session_to_write(2, custom_title("Something else")),
        ],
        dict.fromkeys(
            ["parser", "PARSER", "the pars", "e parser at", "title:parser", "r\u00c9sum\u00e9"], 1
        ),
    ),
    "a part of a title elsewhere": (PARSER_SESSIONS[:1], {"parser": 3}),
    "a part of a title of this project first": (PARSER_SESSIONS[:2], {"parser": 2}),
    "a whole title but for its capitals first": (PARSER_SESSIONS, {"parser": 1}),
    "a part names only what a listing shows; exact titles still do": (
        [
            session_to_write(1, custom_title("Fix the parser")),
            session_to_write(2, custom_title("Parser helper"), entrypoint="sdk-cli", turn_count=1),
            session_to_write(3, custom_title("Parser side"), isSidechain=True),
        ],
        {"parser": 1, "Parser helper": 2},
    ),
    "words that are too short or empty name nothing": (
        [session_to_write(1, custom_title("Fix a title: tag:x # ~1"))],
        dict.fromkeys(
            ["ix", "a", "title: ", "tag: ", "tag:x ", "# ", "~1 ", "latest~x "], NOT_FOUND_ERROR
        ),
    ),
    "an exact title of this project first": (
        [
            session_to_write(1, custom_title("same"), cwd=OTHER_FOLDER),
            session_to_write(2, custom_title("same")),
        ],
        {"same": 2, ("same", OTHER_FOLDER): 1},
    ),
    "one letter may be a word": (
        [session_to_write(1, custom_title("\u4fee\u6b63\u89e3\u6790\u5668"))],
        {"\u89e3\u6790": 1},
    ),
    "a pull request by its number or its address, whatever part of its pages that leads to": (
        [
            session_to_write(
                1,
                make_pull_request_record(7),
                make_pull_request_record(720, "https://github.com/a/b/pull/720"),
            ),
            session_to_write(
                2,
                make_pull_request_record(71, "https://github.com/a/b/pull/71"),
                make_pull_request_record(72),
            ),
        ],
        dict.fromkeys(
            [f"{PULL_REQUEST_URL}{more}" for more in ("", "/files", "#discussion_r1", "?w=1")]
            + [
                PULL_REQUEST_URL.upper(),
                "#72",
                "pr:72",
                "PR:#72",
                "72",
                "#0072",
                "pr:072",
                "00072",
            ],
            2,
        ),
    ),
    "a number is this project's first, an address always says which": (
        [
            session_to_write(1, make_pull_request_record(72), cwd="/one"),
            session_to_write(2, make_pull_request_record(72, OTHER_PULL_REQUEST_URL), cwd="/two"),
        ],
        {
            ("#72", "/one"): 1,
            ("#72", "/two"): 2,
            (PULL_REQUEST_URL, "/two"): 1,
            (OTHER_PULL_REQUEST_URL, "/one"): 2,
        }
        | {"#72": (AmbiguousLocator, "")},
    ),
    "a bare number comes last": (
        [
            session_to_write(1, make_pull_request_record(72)),
            session_to_write(2, make_tag_record("72")),
        ],
        {"72": 2, "#72": 1},
    ),
    "what is no number links nothing": (
        [
            session_to_write(place, make_pull_request_record(number, 7))
            for place, number in enumerate(["72", None, True, 72.0, [72]], 1)
        ],
        {"#72": NOT_FOUND_ERROR},
    ),
    "an address is not followed, a pull request's is only looked up": (
        [],
        {
            "https://example.org/a.jsonl?key=secret": NOT_IMPORTED_ERROR,
            "HTTP://127.0.0.1/x": NOT_IMPORTED_ERROR,
            PULL_REQUEST_URL: (SessionNotFound, "No session is linked to this pull request"),
        },
    ),
    "an exact title may be an address": (
        [session_to_write(1, custom_title("https://example.org/issue?id=1"))],
        {"https://example.org/issue?id=1": 1},
    ),
    "what is no file may be a part of a title or a tag": (
        [session_to_write(1, custom_title("Fix src/parser.py"), make_tag_record("team/red"))],
        {
            "src/parser": 1,
            "team/red": 1,
            "src/other.py": (SessionNotFound, r"src/other\.py can't be read: No such file"),
        },
    ),
    "of folders with one key the one named inside decides": (
        [
            session_to_write(1, custom_title("same"), cwd="/w/a_b"),
            session_to_write(2, custom_title("same"), cwd="/w/a-b"),
        ],
        {("same", "/w/a_b"): 1, ("same", "/w/a-b"): 2},
    ),
}


@pytest.mark.parametrize("case_name", LOCATOR_CASES)
def test_each_form_of_a_locator_finds_its_session(config_home: ConfigHome, case_name: str) -> None:
    """In each case, every locator finds the expected session or raises the expected error.

    The higher a session's number is, the older the session is.
    """
    sessions, expected = LOCATOR_CASES[case_name]
    for each in sessions:
        write_numbered_talk(
            config_home, each.session_number, *each.more_records, cwd=each.cwd, **each.fields
        )
    for typed, meant in expected.items():
        words, cwd = (typed, CWD) if isinstance(typed, str) else typed
        if isinstance(meant, int):
            assert find_session_number(config_home, words, cwd) == meant, words
        else:
            with pytest.raises(meant[0], match=meant[1] or None):
                find_session_number(config_home, words, cwd)


def test_an_address_names_the_import_command(config_home: ConfigHome) -> None:
    """A web address raises an error with the import command, but without secrets in the address."""
    with pytest.raises(UsageError) as caught:
        find_session_number(config_home, "https://example.org/a.jsonl?key=secret")
    assert (caught.value.remedy, caught.value.exit_code) == ("curl URL | resume-hooks import -", 2)
    assert "secret" not in caught.value.message


def test_latest_inside_the_client_is_the_current_session(config_home: ConfigHome) -> None:
    """Inside the client, ``latest`` is the current session, and ``latest~1`` is the newest other session."""
    for number in (1, 2, 3):
        write_numbered_talk(config_home, number)
    inside = {"CLAUDE_CODE_SESSION_ID": session_id(2)}
    assert [
        find_session_number(config_home, words, **inside)
        for words in ("latest", "latest~1", "latest~2")
    ] == [2, 1, 3]


def test_an_ambiguous_locator_lists_its_matches(config_home: ConfigHome) -> None:
    """An ambiguous locator raises an error with the matching sessions of this project, newest first."""
    same = [session_to_write(number, custom_title("same")) for number in (7, 6)]
    for each in [
        *PARSER_SESSIONS,
        session_to_write(5, make_tag_record("wip")),
        session_to_write(4, make_tag_record("wip")),
        *same,
    ]:
        write_numbered_talk(config_home, each.session_number, *each.more_records, cwd=each.cwd)
    for words, found in {"pars": [1, 2], "wip": [4, 5], "same": [6, 7]}.items():
        with pytest.raises(AmbiguousLocator, match=f"'{words}' fits 2 sessions") as caught:
            find_session_number(config_home, words)
        assert [row["session_id"] for row in caught.value.candidates] == [
            session_id(number) for number in found
        ]
        assert (caught.value.locator, caught.value.exit_code) == (words, 2)
        assert set(caught.value.candidates[0]) == {"session_id", "title", "ended", "session_file"}
    with pytest.raises(AmbiguousLocator, match="'0000' fits 7 sessions"):
        find_session_number(config_home, "0000")


def test_many_candidates_are_counted(config_home: ConfigHome) -> None:
    """An ambiguous locator raises an error that lists the newest matches and states how many there are."""
    for number in range(1, MAX_SUGGESTED_SESSIONS + 6):
        write_numbered_talk(config_home, number, custom_title(f"Same words {number}"))
    with pytest.raises(
        AmbiguousLocator, match=f"fits {MAX_SUGGESTED_SESSIONS + 5} sessions"
    ) as caught:
        find_session_number(config_home, "same words")
    assert len(caught.value.candidates) == MAX_SUGGESTED_SESSIONS
    assert caught.value.candidates[0]["session_id"] == session_id(1)


def test_locators_work_in_a_models_shell(config_home: ConfigHome) -> None:
    """In a shell that the model runs, locators find the same session as in the user's shell."""
    write_numbered_talk(
        config_home,
        1,
        custom_title("Fix the parser"),
        make_tag_record("wip"),
        make_pull_request_record(72),
    )
    for words in ("latest", "parser", "wip", "#72"):
        assert find_session_number(config_home, words, CLAUDECODE="1") == 1


def test_resolvers_can_be_added_and_reordered(config_home: ConfigHome) -> None:
    """``resolve_locator`` uses the given resolvers, including custom ones, instead of its default ones."""
    path = write_numbered_talk(config_home, 1, custom_title("mine"))

    def find_by_nickname(locator: str, scope: LocatorScope) -> SessionFile | None:
        return session_file(path) if locator == "boss" and scope.cwd == CWD else None

    assert (
        resolve_locator(
            "boss", CWD, config_home.where, resolvers=(find_by_nickname, *RESOLVERS)
        ).path
        == path
    )
    with pytest.raises(SessionNotFound):
        resolve_locator("mine", CWD, config_home.where, resolvers=(find_by_nickname,))


@pytest.mark.parametrize("locator", [session_id(5), session_id(5)[:8], "Copied"])
def test_the_copy_in_this_project_is_preferred(config_home: ConfigHome, locator: str) -> None:
    """If a session was copied to another project, the copy in the current project is found.

    From other projects, the newest copy is found.
    """
    newer = write_numbered_talk(config_home, 5, custom_title("Copied", session_id(5)), cwd="/other")
    here = write_numbered_talk(config_home, 5, custom_title("Copied", session_id(5)))
    os.utime(here, (1, 1))
    assert resolve_locator(locator, CWD, config_home.where).path == here
    for cwd in ("/other", "/elsewhere"):
        assert resolve_locator(locator, cwd, config_home.where).path == newer


def test_the_error_mentions_a_linked_session_file_or_folder(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """If a session's file or folder is a link, the error says so instead of assuming a deletion."""
    path = write_numbered_talk(config_home, 5)
    folder = os.path.dirname(path)
    os.rename(path, tmp_path / "moved.jsonl")
    os.symlink(tmp_path / "moved.jsonl", path)
    with pytest.raises(SessionNotFound) as found:
        resolve_locator(session_id(5), CWD, config_home.where)
    assert found.value.remedy.startswith(
        f"{path} is behind a symbolic link, and links are not followed"
    )
    os.unlink(path)
    os.rename(tmp_path / "moved.jsonl", path)
    os.rename(folder, tmp_path / "moved")
    os.symlink(tmp_path / "moved", folder)
    with pytest.raises(SessionNotFound) as found:
        resolve_locator(session_id(5), CWD, config_home.where)
    assert "deleted" not in found.value.remedy
    for words in (session_id(5)[:8], "some title"):
        with pytest.raises(SessionNotFound) as found:
            resolve_locator(words, CWD, config_home.where)
        assert f"{folder} is behind a symbolic link" in found.value.remedy
    assert resolve_locator(path, CWD, config_home.where).session_id == session_id(5)
