"""Compares our list of sessions with the official SDK's list.

The sessions are those of the corpus, each in the folder of its project. There is one test for each
difference.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from claude_agent_sdk import get_session_info, list_sessions, project_key_for_directory
from claude_agent_sdk.types import SDKSessionInfo

from resume_hooks.paths import Where, is_session_id, project_folders, project_key
from resume_hooks.search.listing import ListedSession, SessionLister, list_project, listing_page
from resume_hooks.system.git_worktrees import project_of_folder
from resume_hooks.system.text import collapse_line
from resume_hooks.transcripts.head_tail import (
    BYTES_READ_AT_EACH_END,
    MISSING_BRANCH_MARKER,
    HeadTail,
)
from resume_hooks.transcripts.records import get_kind
from tests.builders import (
    CWD,
    ConfigHome,
    Record,
    conversation,
    custom_title,
    session_id,
    user,
    write_session,
)
from tests.needs import corpus, corpus_sessions

PADDING_RECORD: Record = {
    "type": "file-history-snapshot",
    "messageId": "x",
    "snapshot": {"padding": "x" * 3 * BYTES_READ_AT_EACH_END},
}
LONG_FOLDER_PATH = "/home/user/" + "a-folder/" * 30


class Listings(NamedTuple):
    """The SDK's list and our list of the sessions in one home.

    The keys are session ids, in the order of each list.
    """

    sdk_sessions: dict[str, SDKSessionInfo]
    our_sessions: dict[str, ListedSession]
    where: Where

    @property
    def pairs_of_rows(self) -> list[tuple[SDKSessionInfo, ListedSession]]:
        """Return the pairs of rows of the sessions that are in both the SDK's list and ours."""
        return [
            (self.sdk_sessions[own], self.our_sessions[own])
            for own in self.sdk_sessions
            if own in self.our_sessions
        ]


@pytest.fixture(scope="module")
def listings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listings]:
    """Return our list and the SDK's list of the whole corpus.

    Each file is in the folder of its project. A file whose name is not an id is renamed to an id.
    """
    corpus()
    config = tmp_path_factory.mktemp("listed") / ".claude"
    environ = {"HOME": str(config.parent), "CLAUDE_CONFIG_DIR": str(config)}
    taken: set[str] = set()
    for number, source in enumerate(corpus_sessions()):
        own = (
            source.stem
            if is_session_id(source.stem) and source.stem not in taken
            else session_id(number)
        )
        taken.add(own)
        target = (
            config / "projects" / project_key(HeadTail(str(source)).cwd or CWD) / f"{own}.jsonl"
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
        os.utime(target, (1e9 + number, 1e9 + number))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        ours = list_project("/", Where(environ), covers_all_projects=True, include_helpers=True)
        yield Listings(
            {info.session_id: info for info in list_sessions()},
            {row.session_id: row for row in ours},
            Where(environ),
        )


def test_shared_sessions_have_the_same_order_in_both_lists(listings: Listings) -> None:
    """Sessions that are in both our list and the SDK's list are in the same order, newest first."""
    assert len(listings.pairs_of_rows) > 70
    assert [own for own in listings.sdk_sessions if own in listings.our_sessions] == [
        own for own in listings.our_sessions if own in listings.sdk_sessions
    ]


def test_both_lists_have_the_same_details(listings: Listings) -> None:
    """Our list and the SDK's list have the same tag, branch, folder, size and time for a session.

    The SDK's branch ``HEAD`` is empty in our list.
    """
    for info, row in listings.pairs_of_rows:
        assert (row.tag, row.branch, row.folder) == (
            info.tag or "",
            "" if info.git_branch == MISSING_BRANCH_MARKER else info.git_branch or "",
            info.cwd or "",
        )
        assert (row.size, int(row.mtime * 1000)) == (info.file_size, info.last_modified)


def test_both_lists_have_the_same_titles(listings: Listings) -> None:
    """A title from the user or the client is the same in the SDK's list and in ours.

    In our list, a title has at most 80 characters.
    """
    titled = [
        (info.custom_title, row.title) for info, row in listings.pairs_of_rows if info.custom_title
    ]
    assert all(row == collapse_line(title, 80) for title, row in titled)


def test_the_sdk_returns_a_session_by_its_id(listings: Listings) -> None:
    """For each id, the SDK's ``get_session_info`` returns the row of the SDK's list."""
    assert {own: get_session_info(own) for own in listings.sdk_sessions} == listings.sdk_sessions


@pytest.mark.parametrize(("limit", "offset"), [(1, 0), (7, 0), (7, 7), (20, 75), (3, 500)])
def test_both_lists_have_the_same_pages(listings: Listings, limit: int, offset: int) -> None:
    """The SDK's ``limit`` and ``offset`` select the same sessions as ours."""
    look = SessionLister("/", listings.where)
    found = listing_page(look, None, max_rows=limit, first_row=offset, include_helpers=True).rows
    assert [row.session_id for row in found] == list(listings.our_sessions)[offset : offset + limit]
    assert [info.session_id for info in list_sessions(limit=limit, offset=offset)] == list(
        listings.sdk_sessions
    )[offset:][:limit]


def test_both_lists_have_the_same_sessions_of_each_folder(listings: Listings) -> None:
    """For each folder, our list and the SDK's list contain the same sessions.

    These are the sessions that started in the folder.
    """
    folders = {row.folder for row in listings.our_sessions.values() if row.folder}
    assert len(folders) > 10
    for folder in folders:
        theirs = {info.session_id for info in list_sessions(folder)} & listings.our_sessions.keys()
        ours = {
            row.session_id for row in list_project(folder, listings.where, include_helpers=True)
        } & listings.sdk_sessions.keys()
        assert ours == theirs


def test_unlike_ours_the_sdks_list_has_files_without_text(listings: Listings) -> None:
    """The SDK lists files with only summaries and snapshots. We don't.

    No client can resume these files.
    """
    alone = listings.sdk_sessions.keys() - listings.our_sessions.keys()
    assert alone
    for own in alone:
        (path,) = Path(listings.where.config).glob(f"projects/*/{own}.jsonl")
        assert not {"user", "assistant"} & {
            get_kind(record) for record in HeadTail(str(path)).first_records
        }


def test_unlike_ours_the_sdk_ignores_summaries_at_the_beginning(listings: Listings) -> None:
    """The SDK does not list a session whose only text is a summary at its beginning. We list it."""
    alone = listings.our_sessions.keys() - listings.sdk_sessions.keys()
    assert alone
    assert all(
        get_session_info(own) is None and listings.our_sessions[own].title != "(no prompt yet)"
        for own in alone
    )


def test_unlike_ours_the_sdk_takes_the_first_timestamp(listings: Listings) -> None:
    """The SDK takes the first ``timestamp`` in the file, even if it is in a nested object.

    We take the ``timestamp`` of the record itself.
    """
    for info, row in listings.pairs_of_rows:
        text = HeadTail(row.path).head.decode("utf-8", "replace")
        if (
            info.created_at is not None
            and row.creation_time not in text.partition('"timestamp":"')[2][:30]
        ):
            assert text.count('"timestamp"') > 1


def test_unlike_ours_the_sdk_shows_the_last_prompt_as_a_title(config_home: ConfigHome) -> None:
    """If a session has no title, the SDK shows the last prompt even if there is a summary.

    We and the client show the summary. Without a summary, the client shows the last prompt, but we
    show the first one, which stays the same.
    """
    last: Record = {"type": "last-prompt", "lastPrompt": "and now?", "leafUuid": "r3"}
    summed: Record = {"type": "summary", "summary": "Summed up", "leafUuid": "r3"}
    write_session(config_home.project(), session_id(1), [*conversation(2), last], mtime=2)
    write_session(config_home.project(), session_id(2), [*conversation(2), summed, last], mtime=1)
    assert [info.summary for info in list_sessions()] == ["and now?", "and now?"]
    assert [row.title for row in list_project(CWD, config_home.where)] == ["prompt 0", "Summed up"]


def test_unlike_ours_the_sdk_skips_a_very_long_first_line(config_home: ConfigHome) -> None:
    """The SDK does not list a session with a very long first line. We show its first prompt.

    Clients can resume such a session.
    """
    write_session(
        config_home.project(), session_id(1), [user("word " * 40_000, uuid="u"), *conversation(1)]
    )
    assert list_sessions() == []
    assert [row.title for row in list_project(CWD, config_home.where)] == [
        collapse_line("word " * 40, 80)
    ]


def test_unlike_ours_the_sdk_mixes_folders_with_the_same_key(config_home: ConfigHome) -> None:
    """If two folders have the same key, the SDK lists the sessions of both.

    Our listing compares the folders of the sessions, so it lists those of one folder only.
    """
    for number, cwd in ((1, "/w/a_b"), (2, "/w/a-b")):
        records = [{**record, "cwd": cwd} for record in conversation(1)]
        write_session(config_home.project(cwd), session_id(number), records, mtime=number)
    assert (
        project_key_for_directory("/w/a_b")
        == project_key_for_directory("/w/a-b")
        == project_key("/w/a_b")
    )
    assert len(list_sessions("/w/a_b")) == 2
    assert [row.session_id for row in list_project("/w/a_b", config_home.where)] == [session_id(1)]
    assert [row.session_id for row in list_project("/w/a-b", config_home.where)] == [session_id(2)]


def test_unlike_ours_the_sdk_reads_only_one_folder_of_a_long_path(config_home: ConfigHome) -> None:
    """For a path of more than 200 characters, the SDK reads one folder, and we read all matching ones.

    Clients use different hashes at the end of the folder's name.
    """
    keys = [project_key(LONG_FOLDER_PATH), f"{project_key(LONG_FOLDER_PATH)[:200]}-other"]
    assert keys[0] == project_key_for_directory(LONG_FOLDER_PATH)
    for number, key in enumerate(keys, 1):
        records = [{**record, "cwd": LONG_FOLDER_PATH} for record in conversation(1)]
        write_session(
            config_home.config / "projects" / key, session_id(number), records, mtime=number
        )
    stranger = [{**record, "cwd": LONG_FOLDER_PATH + "deeper"} for record in conversation(1)]
    write_session(config_home.config / "projects" / keys[1], session_id(3), stranger, mtime=3)
    assert len(project_folders(LONG_FOLDER_PATH, config_home.where)) == 2
    assert [info.session_id for info in list_sessions(LONG_FOLDER_PATH)] == [session_id(1)]
    assert [row.session_id for row in list_project(LONG_FOLDER_PATH, config_home.where)] == [
        session_id(2),
        session_id(1),
    ]


def test_unlike_ours_the_sdk_lists_headless_runs(config_home: ConfigHome) -> None:
    """The SDK lists headless runs, which the client's picker hides. We list them only on request."""
    once = [{**record, "entrypoint": "sdk-cli"} for record in conversation(1)]
    write_session(config_home.project(), session_id(1), once)
    assert len(list_sessions(CWD)) == 1
    assert list(list_project(CWD, config_home.where)) == []
    assert len(list(list_project(CWD, config_home.where, include_helpers=True))) == 1


def test_unlike_ours_the_sdk_misses_a_tag_far_from_the_end(config_home: ConfigHome) -> None:
    """The SDK finds a tag only in the last 64 KB of a file. We also find it in the first records."""
    tag: Record = {"type": "tag", "tag": "draft"}
    write_session(
        config_home.project(),
        session_id(1),
        [tag, *conversation(1), PADDING_RECORD, custom_title("Mine")],
    )
    assert [info.tag for info in list_sessions()] == [None]
    assert [row.tag for row in list_project(CWD, config_home.where)] == ["draft"]


def test_a_folder_without_a_repository_is_a_project(config_home: ConfigHome) -> None:
    """For a folder without a repository, the SDK and we list only the sessions of exactly this folder."""
    for number, cwd in enumerate((CWD, f"{CWD}/deep", f"{CWD}-two"), 1):
        records = [{**record, "cwd": cwd} for record in conversation(1)]
        write_session(config_home.project(cwd), session_id(number), records)
    assert [info.session_id for info in list_sessions(CWD)] == [session_id(1)]
    assert [row.session_id for row in list_project(CWD, config_home.where)] == [session_id(1)]
    assert project_of_folder(CWD, config_home.where).root_folders == ()
