"""Our listing next to the official SDK's, on the corpus laid out as projects.

Each difference is a test of its own.
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
from resume_hooks.transcripts.head_tail import END_BYTES, NO_BRANCH, HeadTail
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

PADDING: Record = {
    "type": "file-history-snapshot",
    "messageId": "x",
    "snapshot": {"padding": "x" * 3 * END_BYTES},
}
LONG = "/home/user/" + "a-folder/" * 30


class Both(NamedTuple):
    """The SDK's list and ours of the same home, by id, in order; ``where`` is the home's."""

    sdk: dict[str, SDKSessionInfo]
    ours: dict[str, ListedSession]
    where: Where

    @property
    def pairs(self) -> list[tuple[SDKSessionInfo, ListedSession]]:
        """Return the sessions in both lists."""
        return [(self.sdk[own], self.ours[own]) for own in self.sdk if own in self.ours]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """The whole corpus, each file in the folder of its project.

    Names that are not ids are given one.
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
        ours = list_project("/", Where(environ), all_projects=True, include_helpers=True)
        yield Both(
            {info.session_id: info for info in list_sessions()},
            {row.session_id: row for row in ours},
            Where(environ),
        )


def test_the_same_sessions_in_the_same_order(both: Both) -> None:
    """Newest first; what only one of them lists is named below."""
    assert len(both.pairs) > 70
    assert [own for own in both.sdk if own in both.ours] == [
        own for own in both.ours if own in both.sdk
    ]


def test_the_same_facts(both: Both) -> None:
    """Tag, branch, folder, size and time of every session. ``HEAD``, which the SDK shows, is no branch."""
    for info, row in both.pairs:
        assert (row.tag, row.branch, row.folder) == (
            info.tag or "",
            "" if info.git_branch == NO_BRANCH else info.git_branch or "",
            info.cwd or "",
        )
        assert (row.size, int(row.mtime * 1000)) == (info.file_size, info.last_modified)


def test_the_same_titles(both: Both) -> None:
    """Wherever a person or the client gave one; we show the first 80 characters."""
    titled = [(info.custom_title, row.title) for info, row in both.pairs if info.custom_title]
    assert all(row == collapse_line(title, 80) for title, row in titled)


def test_each_session_by_its_id(both: Both) -> None:
    """The SDK's look at one session agrees with its listing, and so with ours."""
    assert {own: get_session_info(own) for own in both.sdk} == both.sdk


@pytest.mark.parametrize(("limit", "offset"), [(1, 0), (7, 0), (7, 7), (20, 75), (3, 500)])
def test_the_same_pages(both: Both, limit: int, offset: int) -> None:
    """Limit and offset cut the same places out of what both list."""
    look = SessionLister("/", both.where)
    found = listing_page(look, None, max_rows=limit, first_row=offset, include_helpers=True).rows
    assert [row.session_id for row in found] == list(both.ours)[offset : offset + limit]
    assert [info.session_id for info in list_sessions(limit=limit, offset=offset)] == list(
        both.sdk
    )[offset:][:limit]


def test_a_project_at_a_time(both: Both) -> None:
    """Of each folder that sessions were started in, both list the same ones."""
    folders = {row.folder for row in both.ours.values() if row.folder}
    assert len(folders) > 10
    for folder in folders:
        theirs = {info.session_id for info in list_sessions(folder)} & both.ours.keys()
        ours = {
            row.session_id for row in list_project(folder, both.where, include_helpers=True)
        } & both.sdk.keys()
        assert ours == theirs


def test_difference_files_without_a_word(both: Both) -> None:
    """The SDK lists files of summaries and snapshots alone.

    No client can resume them, so we don't.
    """
    alone = both.sdk.keys() - both.ours.keys()
    assert alone
    for own in alone:
        (path,) = Path(both.where.config).glob(f"projects/*/{own}.jsonl")
        assert not {"user", "assistant"} & {
            get_kind(record) for record in HeadTail(str(path)).first_records
        }


def test_difference_summaries_in_the_head(both: Both) -> None:
    """The SDK looks for summaries at the end alone and passes over what it finds no words for.

    We list it.
    """
    alone = both.ours.keys() - both.sdk.keys()
    assert alone
    assert all(
        get_session_info(own) is None and both.ours[own].title != "(no prompt yet)" for own in alone
    )


def test_difference_when_a_session_began(both: Both) -> None:
    """The SDK takes the first ``timestamp`` in the text, also one within a record.

    Ours is the first record's own.
    """
    for info, row in both.pairs:
        text = HeadTail(row.path).head.decode("utf-8", "replace")
        if (
            info.created_at is not None
            and row.created not in text.partition('"timestamp":"')[2][:30]
        ):
            assert text.count('"timestamp"') > 1


def test_difference_the_last_prompt_is_not_a_title(config_home: ConfigHome) -> None:
    """Without a given title the SDK shows the last prompt, before a summary.

    The client shows the summary (e2e), as we.

    Where there is none the client shows the last prompt, too: we stay with the first, which continues
    naming the session.
    """
    last: Record = {"type": "last-prompt", "lastPrompt": "and now?", "leafUuid": "r3"}
    summed: Record = {"type": "summary", "summary": "Summed up", "leafUuid": "r3"}
    write_session(config_home.project(), session_id(1), [*conversation(2), last], mtime=2)
    write_session(config_home.project(), session_id(2), [*conversation(2), summed, last], mtime=1)
    assert [info.summary for info in list_sessions()] == ["and now?", "and now?"]
    assert [row.title for row in list_project(CWD, config_home.where)] == ["prompt 0", "Summed up"]


def test_difference_a_first_line_longer_than_the_reach(config_home: ConfigHome) -> None:
    """The SDK finds no words and lists no such session.

    The client resumes it, and we show its prompt.
    """
    write_session(
        config_home.project(), session_id(1), [user("word " * 40_000, uuid="u"), *conversation(1)]
    )
    assert list_sessions() == []
    assert [row.title for row in list_project(CWD, config_home.where)] == [
        collapse_line("word " * 40, 80)
    ]


def test_difference_colliding_keys(config_home: ConfigHome) -> None:
    """Of two folders with one key the SDK lists each as the other's.

    For us the folder inside decides.
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


def test_difference_long_keys_of_other_clients(config_home: ConfigHome) -> None:
    """Past 200 characters clients hash differently.

    The SDK stops at the first folder that fits, we look into each.
    """
    keys = [project_key(LONG), f"{project_key(LONG)[:200]}-other"]
    assert keys[0] == project_key_for_directory(LONG)
    for number, key in enumerate(keys, 1):
        records = [{**record, "cwd": LONG} for record in conversation(1)]
        write_session(
            config_home.config / "projects" / key, session_id(number), records, mtime=number
        )
    stranger = [{**record, "cwd": LONG + "deeper"} for record in conversation(1)]
    write_session(config_home.config / "projects" / keys[1], session_id(3), stranger, mtime=3)
    assert len(project_folders(LONG, config_home.where)) == 2
    assert [info.session_id for info in list_sessions(LONG)] == [session_id(1)]
    assert [row.session_id for row in list_project(LONG, config_home.where)] == [
        session_id(2),
        session_id(1),
    ]


def test_difference_helpers(config_home: ConfigHome) -> None:
    """The SDK lists headless runs, which the client's picker hides.

    So do we, unless they are asked for.
    """
    once = [{**record, "entrypoint": "sdk-cli"} for record in conversation(1)]
    write_session(config_home.project(), session_id(1), once)
    assert len(list_sessions(CWD)) == 1
    assert list(list_project(CWD, config_home.where)) == []
    assert len(list(list_project(CWD, config_home.where, include_helpers=True))) == 1


def test_difference_a_tag_far_from_the_end(config_home: ConfigHome) -> None:
    """The SDK reads tags in the last 64 KB.

    Ours is found in the first ones, too, where nothing was tagged since.
    """
    tag: Record = {"type": "tag", "tag": "draft"}
    write_session(
        config_home.project(), session_id(1), [tag, *conversation(1), PADDING, custom_title("Mine")]
    )
    assert [info.tag for info in list_sessions()] == [None]
    assert [row.tag for row in list_project(CWD, config_home.where)] == ["draft"]


def test_the_project_of_a_folder_below(config_home: ConfigHome) -> None:
    """A folder without a repository is a project of its own for both, whatever is below or next to it."""
    for number, cwd in enumerate((CWD, f"{CWD}/deep", f"{CWD}-two"), 1):
        records = [{**record, "cwd": cwd} for record in conversation(1)]
        write_session(config_home.project(cwd), session_id(number), records)
    assert [info.session_id for info in list_sessions(CWD)] == [session_id(1)]
    assert [row.session_id for row in list_project(CWD, config_home.where)] == [session_id(1)]
    assert project_of_folder(CWD, config_home.where).within == ()
