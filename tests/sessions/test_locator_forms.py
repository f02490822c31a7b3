"""The forms of a locator beyond id, prefix, path and exact title (test_locate.py), and the chain they make."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
from claude_agent_sdk import InMemorySessionStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resume_hooks.errors import AmbiguousLocator, ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.paths import Where, project_key
from resume_hooks.search import listing
from resume_hooks.search.listing import SessionLister
from resume_hooks.sessions.files import SessionFile, session_file
from resume_hooks.sessions.locate import resolve
from resume_hooks.sessions.locator_forms import MOST_CANDIDATES, RESOLVERS
from resume_hooks.sessions.lookup import SessionStore, Surroundings
from resume_hooks.system.git_worktrees import project_at
from tests.builders import CWD, ConfigHome, Record, conversation, custom_title, session_id, write_session

PULL = "https://github.com/entireio/git-sync/pull/72"


def talk(home: ConfigHome, number: int, *more: Record, cwd: str = CWD, **envelope: Any) -> str:
    """A session of two turns; of those made in one test a higher number is older."""
    records = [{**record, "cwd": cwd, **envelope} for record in conversation(2, session_id=session_id(number))]
    moment = time.time() - 60 * number
    return write_session(home.project(cwd), session_id(number), [*records, *more], mtime=moment)


def tag(name: str) -> Record:
    """A tag's record."""
    return {"type": "tag", "tag": name}


def link(number: object, url: object = PULL) -> Record:
    """A pull request's record, as the client writes it."""
    return {"type": "pr-link", "prNumber": number, "prUrl": url, "prRepository": "entireio/git-sync"}


def named(home: ConfigHome, words: str, cwd: str = CWD, **environ: str) -> int:
    """The number of the session that words name."""
    return int(resolve(words, cwd, Where({**home.environ, **environ})).session_id[:8], 16)


@pytest.mark.parametrize(
    ("words", "number"),
    [("latest", 1), ("LATEST", 1), ("latest~", 2), ("latest~0", 1), ("latest~1", 2), ("latest~2", 3), (" latest ", 1)],
)
def test_latest_and_those_before_it(config_home: ConfigHome, words: str, number: int) -> None:
    """Counted back among what ``latest`` may be: no helpers, no sub-agents, nothing of another folder."""
    talk(config_home, 1)
    talk(config_home, 2)
    talk(config_home, 3)
    talk(config_home, 0, entrypoint="sdk-cli")
    talk(config_home, 9, cwd="/elsewhere")
    assert named(config_home, words) == number


def test_counting_back_too_far(config_home: ConfigHome) -> None:
    """It says how many there are; nothing at all is another sentence."""
    talk(config_home, 1)
    with pytest.raises(SessionNotFound, match=f"There is only 1 session of {CWD} to count back"):
        named(config_home, "latest~1")
    with pytest.raises(SessionNotFound, match="No session of /nowhere yet"):
        named(config_home, "latest~1", "/nowhere")


def test_latest_inside_the_client(config_home: ConfigHome) -> None:
    """It is the current session, as where nothing is said; the ones before it are the newest others."""
    for number in (1, 2, 3):
        talk(config_home, number)
    inside = {"CLAUDE_CODE_SESSION_ID": session_id(2)}
    assert [named(config_home, words, **inside) for words in ("latest", "latest~1", "latest~2")] == [2, 1, 3]


def test_latest_is_always_the_word(config_home: ConfigHome) -> None:
    """A session that is called so, which a hostile file may be, is reached as ``title:latest`` or by its id."""
    talk(config_home, 1)
    talk(config_home, 2, custom_title("latest"))
    talk(config_home, 3, custom_title("latest~2"))
    assert (named(config_home, "latest"), named(config_home, "title:latest")) == (1, 2)
    assert named(config_home, "title:latest~2") == 3


def test_a_tag(config_home: ConfigHome) -> None:
    """Alone or after ``tag:``, whatever its capitals; the last one counts; this project before all others."""
    talk(config_home, 1, tag("old"), tag("Review"))
    talk(config_home, 2, tag("review"), cwd="/elsewhere")
    assert [named(config_home, words) for words in ("review", "tag:REVIEW", "Tag: review")] == [1, 1, 1]
    assert named(config_home, "review", "/elsewhere") == 2
    with pytest.raises(SessionNotFound):
        named(config_home, "old")


def test_a_tag_that_several_have(config_home: ConfigHome) -> None:
    """Ambiguous, newest first."""
    talk(config_home, 2, tag("wip"))
    talk(config_home, 1, tag("wip"))
    with pytest.raises(AmbiguousLocator, match="'wip' fits 2 sessions") as caught:
        named(config_home, "wip")
    assert [row["session_id"] for row in caught.value.candidates] == [session_id(1), session_id(2)]
    assert caught.value.locator == "wip"


def test_a_title_comes_before_a_tag_and_a_tag_before_a_part(config_home: ConfigHome) -> None:
    """The order of the forms decides, not the order of the sessions."""
    talk(config_home, 1, custom_title("The parser at work"))
    talk(config_home, 2, tag("parser"))
    assert named(config_home, "parser") == 2
    talk(config_home, 3, custom_title("parser"))
    assert named(config_home, "parser") == 3
    assert named(config_home, "tag:parser") == 2


@pytest.mark.parametrize("words", ["parser", "PARSER", "the pars", "e parser at", "title:parser", "r\u00c9sum\u00e9"])
def test_a_part_of_a_title(config_home: ConfigHome, words: str) -> None:
    """Any part of one title, whatever its capitals."""
    talk(config_home, 1, custom_title("Fix the Parser at r\u00e9sum\u00e9"))
    talk(config_home, 2, custom_title("Something else"))
    assert named(config_home, words) == 1


def test_a_part_that_several_titles_have(config_home: ConfigHome) -> None:
    """A whole title but for its capitals comes first; else they are candidates, newest first, of this project."""
    talk(config_home, 3, custom_title("Fix the parser"), cwd="/elsewhere")
    assert named(config_home, "parser") == 3
    talk(config_home, 2, custom_title("Fix the parser again"))
    assert named(config_home, "parser") == 2
    talk(config_home, 1, custom_title("Parser"))
    assert named(config_home, "parser") == 1
    with pytest.raises(AmbiguousLocator) as caught:
        named(config_home, "pars")
    assert [row["title"] for row in caught.value.candidates] == ["Parser", "Fix the parser again"]


def test_a_part_names_only_what_a_listing_shows(config_home: ConfigHome) -> None:
    """No helper, no sub-agent's file; their exact titles still do."""
    talk(config_home, 1, custom_title("Fix the parser"))
    once = [{**record, "entrypoint": "sdk-cli"} for record in conversation(1)]
    write_session(config_home.project(), session_id(2), [*once, custom_title("Parser helper")])
    side = [{**record, "isSidechain": True} for record in conversation(2)]
    write_session(config_home.project(), session_id(3), [*side, custom_title("Parser side")])
    assert named(config_home, "parser") == 1
    assert named(config_home, "Parser helper") == 2


@pytest.mark.parametrize("words", ["ix", "a", "title:", "tag:", "tag:x", "#", "~1", "latest~x"])
def test_words_that_are_too_short_or_empty(config_home: ConfigHome, words: str) -> None:
    """They name nothing, whatever titles there are."""
    talk(config_home, 1, custom_title("Fix a title: tag:x # ~1"))
    with pytest.raises(SessionNotFound):
        named(config_home, words if words in {"ix", "a"} else f"{words} ")


def test_a_part_of_two_letters_of_a_script_of_words(config_home: ConfigHome) -> None:
    """One letter may be a word there."""
    talk(config_home, 1, custom_title("\u4fee\u6b63\u89e3\u6790\u5668"))
    assert named(config_home, "\u89e3\u6790") == 1


@pytest.mark.parametrize(
    "words",
    ["#72", "pr:72", "PR:#72", PULL, f"{PULL}/files", f"{PULL}#discussion_r1", f"{PULL}?w=1", PULL.upper(), "72"],
)
def test_a_pull_request(config_home: ConfigHome, words: str) -> None:
    """By its number or its address, whatever part of its pages that leads to."""
    talk(config_home, 1, link(7), link(720, "https://github.com/a/b/pull/720"))
    talk(config_home, 2, link(71, "https://github.com/a/b/pull/71"), link(72))
    assert named(config_home, words) == 2


def test_a_pull_request_of_several_repositories(config_home: ConfigHome) -> None:
    """The number is this project's first; the address always says which."""
    other = "https://github.com/a/b/pull/72"
    talk(config_home, 1, link(72), cwd="/one")
    talk(config_home, 2, link(72, other), cwd="/two")
    assert (named(config_home, "#72", "/one"), named(config_home, "#72", "/two")) == (1, 2)
    assert (named(config_home, PULL, "/two"), named(config_home, other, "/one")) == (1, 2)
    with pytest.raises(AmbiguousLocator):
        named(config_home, "#72")


def test_a_bare_number_comes_last(config_home: ConfigHome) -> None:
    """A title, a tag or a part of one that reads so is meant first; ``#72`` is always the pull request."""
    talk(config_home, 1, link(72))
    talk(config_home, 2, tag("72"))
    assert (named(config_home, "72"), named(config_home, "#72")) == (2, 1)


@pytest.mark.parametrize("number", ["72", None, True, 72.0, [72]])
def test_odd_links(config_home: ConfigHome, number: object) -> None:
    """What is no number links nothing, and fails nothing."""
    talk(config_home, 1, link(number, 7))
    with pytest.raises(SessionNotFound):
        named(config_home, "#72")


def test_an_address_is_not_followed(config_home: ConfigHome) -> None:
    """It says what brings it in, and repeats no query, which may hold a key; a pull request's is only looked up."""
    for words in ("https://example.org/a.jsonl?key=secret", "HTTP://127.0.0.1/x"):
        with pytest.raises(UsageError, match="An address names no session before it is brought in") as caught:
            named(config_home, words)
        assert caught.value.remedy == "Bring it in first: resume-hooks import ADDRESS"
        assert caught.value.exit_code == 2
    with pytest.raises(SessionNotFound, match="No session is linked to this pull request"):
        named(config_home, PULL)


def test_a_title_that_is_an_address(config_home: ConfigHome) -> None:
    """First prompts may be; an exact title names its session."""
    talk(config_home, 1, custom_title("https://example.org/issue?id=1"))
    assert named(config_home, "https://example.org/issue?id=1") == 1


def test_a_slash_in_the_words_of_a_form(config_home: ConfigHome) -> None:
    """What is no file may be a part of a title or a tag."""
    talk(config_home, 1, custom_title("Fix src/parser.py"), tag("team/red"))
    assert named(config_home, "src/parser") == named(config_home, "team/red") == 1
    with pytest.raises(SessionNotFound, match=r"src/other\.py can't be read: No such file"):
        named(config_home, "src/other.py")


def test_many_candidates(config_home: ConfigHome) -> None:
    """The newest are shown, and all are counted."""
    for number in range(1, MOST_CANDIDATES + 6):
        talk(config_home, number, custom_title(f"Same words {number}"))
    with pytest.raises(AmbiguousLocator, match=f"fits {MOST_CANDIDATES + 5} sessions") as caught:
        named(config_home, "same words")
    assert len(caught.value.candidates) == MOST_CANDIDATES
    assert caught.value.candidates[0]["session_id"] == session_id(1)


def test_a_model_s_shell(config_home: ConfigHome, tmp_path: Path) -> None:
    """There the same forms name the same sessions, and still no file beyond the transcripts."""
    talk(config_home, 1, custom_title("Fix the parser"), tag("wip"), link(72))
    for words in ("latest", "parser", "wip", "#72"):
        assert named(config_home, words, CLAUDECODE="1") == 1
    outside = write_session(tmp_path, "notes", conversation(1))
    with pytest.raises(UsageError, match="is no transcript"):
        named(config_home, outside, CLAUDECODE="1")


def test_resolvers_of_ones_own(config_home: ConfigHome) -> None:
    """A chain is a tuple: forms are added, left out and put in another order."""
    path = talk(config_home, 1, custom_title("mine"))

    def by_nickname(words: str, around: Surroundings) -> SessionFile | None:
        return session_file(path) if words == "boss" and around.cwd == CWD else None

    assert resolve("boss", CWD, config_home.where, resolvers=(by_nickname, *RESOLVERS)).path == path
    with pytest.raises(SessionNotFound):
        resolve("mine", CWD, config_home.where, resolvers=(by_nickname,))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.one_of(
        st.text(max_size=40),
        st.sampled_from(["latest", "tag:", "title:", "pr:", "#", "https://", "http://[", "/", "~", "~user/x"]).flatmap(
            lambda form: st.text(max_size=20).map(lambda rest: form + rest)
        ),
    )
)
def test_whatever_is_typed(config_home: ConfigHome, words: str) -> None:
    """It names a session or fails in a sentence of one line with a documented exit code."""
    talk(config_home, 1, custom_title("Fix the parser"), tag("wip"), link(72))
    try:
        said = resolve(words, CWD, config_home.where).session_id, "", 1
    except ResumeHooksError as error:
        said = error.message, error.remedy, error.exit_code
    assert said[0]
    assert said[2] in {1, 2}


class SdkStore:
    """The official SDK's session store behind ours: what is asked for is laid down as files, once per change."""

    def __init__(self, kept: InMemorySessionStore, projects: Iterable[str], folder: Path) -> None:
        self._kept, self._projects, self._folder = kept, sorted(projects), folder

    def projects(self) -> list[str]:
        """The keys that this adapter was told of: the SDK lists none."""
        return self._projects

    def sessions(self, projects: Iterable[str] | None = None, prefix: str = "") -> list[SessionFile]:
        """The sessions of these keys, newest first."""
        keys = self._projects if projects is None else [key for key in projects if key in self._projects]
        rows = [(key, row) for key in keys for row in asyncio.run(self._kept.list_sessions(key))]
        found = [self._file(key, row["session_id"], row["mtime"]) for key, row in rows]
        return sorted(
            (one for one in found if one.session_id.startswith(prefix)), key=lambda one: one.mtime, reverse=True
        )

    def find(self, session_id: str) -> SessionFile | None:
        """The session of an id."""
        return next(iter(self.sessions(prefix=session_id)), None)

    def hidden(self) -> list[str]:
        """Nothing is."""
        return []

    def linked(self, session_id: str = "") -> list[str]:
        """Nothing is."""
        return []

    def _file(self, key: str, own: str, mtime: int) -> SessionFile:
        path = self._folder / key / f"{own}.jsonl"
        if not path.exists() or path.stat().st_mtime != mtime / 1000:
            entries = asyncio.run(self._kept.load({"project_key": key, "session_id": own})) or []
            write_session(path.parent, own, [orjson.dumps(entry) for entry in entries], mtime=mtime / 1000)
        return SessionFile(own, str(path), mtime / 1000, path.stat().st_size)


def test_the_official_sdk_s_store_can_stand_behind(config_home: ConfigHome, tmp_path: Path) -> None:
    """Every form and the listing work on sessions that no client of this machine ever wrote."""
    kept, key = InMemorySessionStore(), project_key(CWD)
    for number, more in ((2, custom_title("Fix the parser")), (1, tag("wip"))):
        entries: list[Any] = [*conversation(2, session_id=session_id(number)), more]
        asyncio.run(kept.append({"project_key": key, "session_id": session_id(number)}, entries))
    store: SessionStore = SdkStore(kept, [key], tmp_path)
    for words, number in {session_id(2): 2, "Fix the parser": 2, "parser": 2, "wip": 1, "00000002-": 2}.items():
        assert resolve(words, CWD, config_home.where, store=store).session_id == session_id(number)
    look = SessionLister(CWD, config_home.where, store)
    page = listing.page(look, project_at(CWD, config_home.where), limit=0)
    assert [(row.session_id, row.turns) for row in page.rows] == [(session_id(1), 2), (session_id(2), 2)]
    assert os.listdir(config_home.config / "projects") == []


@pytest.mark.parametrize("words", [session_id(5), session_id(5)[:8], "Copied"])
def test_of_several_copies_the_one_of_this_project(config_home: ConfigHome, words: str) -> None:
    """By id, prefix and title alike, whichever is newer; from elsewhere the newest."""
    newer = talk(config_home, 5, custom_title("Copied", session_id(5)), cwd="/other")
    here = talk(config_home, 5, custom_title("Copied", session_id(5)))
    os.utime(here, (1, 1))
    assert resolve(words, CWD, config_home.where).path == here
    for cwd in ("/other", "/elsewhere"):
        assert resolve(words, cwd, config_home.where).path == newer


def test_what_lies_behind_a_link_is_said(config_home: ConfigHome, tmp_path: Path) -> None:
    """A link is not followed; nobody is sent looking for a deletion."""
    path = talk(config_home, 5)
    folder = os.path.dirname(path)
    os.rename(path, tmp_path / "moved.jsonl")
    os.symlink(tmp_path / "moved.jsonl", path)
    with pytest.raises(SessionNotFound) as found:
        resolve(session_id(5), CWD, config_home.where)
    assert found.value.remedy.startswith(f"{path} lies behind a symbolic link, which is not followed")
    os.unlink(path)
    os.rename(tmp_path / "moved.jsonl", path)
    os.rename(folder, tmp_path / "moved")
    os.symlink(tmp_path / "moved", folder)
    with pytest.raises(SessionNotFound) as found:
        resolve(session_id(5), CWD, config_home.where)
    assert "deleted" not in found.value.remedy
    for words in (session_id(5)[:8], "some title"):
        with pytest.raises(SessionNotFound) as found:
            resolve(words, CWD, config_home.where)
        assert f"{folder} lies behind a symbolic link" in found.value.remedy
    assert resolve(path, CWD, config_home.where).session_id == session_id(5)


def test_a_number_with_noughts_before_it(config_home: ConfigHome) -> None:
    """It is the same number."""
    talk(config_home, 1, link(72))
    for words in ("#0072", "pr:072", "00072"):
        assert named(config_home, words) == 1
