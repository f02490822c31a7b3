"""Tests of the transcripts of sub-agents: their folders, their sessions and their locators."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.errors import AmbiguousLocator, SessionNotFound
from resume_hooks.sessions.locate import is_subagent_locator, resolve_transcript
from resume_hooks.sessions.record_references import TranscriptNames, names_of_transcript
from resume_hooks.sessions.transcript_files import (
    Subagent,
    list_transcripts,
    read_owning_session_id,
    read_subagent_type,
    subagent_name,
    subagents_of_session,
    title_of_transcript,
)
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_bytes,
    session_id,
    user,
    write_session,
)

OTHER_ID = session_id(9)


def write_subagent(folder: Path, name: str, session_uuid: str = SESSION) -> Path:
    """Write the transcript of a sub-agent with one prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    record = user(
        "look around", uuid="s0", session_id=session_uuid, isSidechain=True, agentId=name[6:]
    )
    path.write_bytes(session_bytes([record]))
    return path


@pytest.fixture
def session_with_subagents(config_home: ConfigHome) -> Path:
    """Write a session with sub-agents in three places.

    Sub-agents are in the session's folder, in a workflow's folder and beside the session's file.
    Old clients write sub-agents beside the session's file.
    """
    project = config_home.project()
    path = Path(write_session(project, SESSION, conversation(1)))
    own = project / SESSION / "subagents"
    write_subagent(own, "agent-a1b2c3")
    (own / "agent-a1b2c3.meta.json").write_text('{"agentType":"Explore"}')
    write_subagent(own / "workflows" / "run1", "agent-a1ff")
    write_subagent(project, "agent-b7")
    write_subagent(project, "agent-c8", OTHER_ID)
    (own / "agent-link.jsonl").symlink_to(own / "agent-a1b2c3.jsonl")
    (own / "journal.jsonl").write_text("{}")
    return path


def test_sub_agents_of_a_session_are_found_in_all_folders(
    session_with_subagents: Path,
) -> None:
    """The sub-agents of a session are found in all folders in which clients store them.

    Links and other files are ignored.
    """
    found = subagents_of_session(str(session_with_subagents))
    assert [one.name for one in found] == ["agent-a1b2c3", "agent-a1ff", "agent-b7"]
    assert {one.session_id for one in found} == {SESSION}
    assert [read_subagent_type(one.path) for one in found] == ["Explore", "", ""]
    assert [title_of_transcript(one.path) for one in found] == ["look around"] * 3
    assert subagents_of_session(str(session_with_subagents.parent / f"{OTHER_ID}.jsonl")) == [
        Subagent(OTHER_ID, "agent-c8", str(session_with_subagents.parent / "agent-c8.jsonl"))
    ]
    assert subagents_of_session("/nowhere/at/all.jsonl") == []


@pytest.mark.parametrize("link_path", ["", "subagents", "subagents/workflows"])
def test_folders_that_are_links_are_not_followed(
    config_home: ConfigHome, tmp_path: Path, link_path: str
) -> None:
    """A linked folder is not searched for sub-agents, because it may be outside the projects."""
    project = config_home.project()
    path = write_session(project, SESSION, conversation(1))
    outside = tmp_path / "outside"
    write_subagent(outside / "subagents" / "workflows", "agent-a1")
    link = project / SESSION / link_path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside / link_path)
    assert subagents_of_session(path) == []
    assert [file.session_id for file in list_transcripts(config_home.where)] == [SESSION]
    with pytest.raises(SessionNotFound, match="No sub-agent"):
        resolve_transcript(f"{SESSION}/agent-a1", CWD, config_home.where)


def test_the_name_and_the_session_of_a_sub_agent_are_read(
    session_with_subagents: Path, tmp_path: Path
) -> None:
    """A sub-agent's name is read from its file's name, and its session's id from its first record.

    Other file names give no name. An invalid id or a missing file gives no id.
    """
    assert [subagent_name(path) for path in ("/x/agent-1.jsonl", "/x/agent-1.meta.json", f"/x/{SESSION}.jsonl")] == [
        "agent-1", None, None,
    ]  # fmt: skip
    assert read_owning_session_id(str(session_with_subagents.parent / "agent-b7.jsonl")) == SESSION
    (tmp_path / "agent-x.jsonl").write_bytes(b'{"sessionId":"../../etc"}\n')
    assert (
        read_owning_session_id(str(tmp_path / "agent-x.jsonl"))
        == read_owning_session_id(str(tmp_path / "gone"))
        == ""
    )


@pytest.mark.parametrize(
    "locator",
    [f"{SESSION}/agent-a1b2c3", "11111111/agent-a1b", "1111/agent-a1b2c3", "Mine/agent-a1b"],
)
def test_a_locator_finds_a_sub_agent(
    config_home: ConfigHome, session_with_subagents: Path, locator: str
) -> None:
    """A sub-agent's locator is its session's locator, a slash, and the beginning of the sub-agent's name."""
    with session_with_subagents.open("ab") as stream:
        stream.write(session_bytes([custom_title("Mine")]))
    found = resolve_transcript(locator, CWD, config_home.where)
    assert found.session_id == f"{SESSION}/agent-a1b2c3"
    assert found.path == str(
        session_with_subagents.parent / SESSION / "subagents" / "agent-a1b2c3.jsonl"
    )
    assert found.size > 0


def test_a_path_finds_a_sub_agent(config_home: ConfigHome, session_with_subagents: Path) -> None:
    """A sub-agent is found by its transcript's path, and by its session's path followed by its name."""
    nested = (
        session_with_subagents.parent
        / SESSION
        / "subagents"
        / "workflows"
        / "run1"
        / "agent-a1ff.jsonl"
    )
    assert (
        resolve_transcript(str(nested), "/", config_home.where).session_id
        == f"{SESSION}/agent-a1ff"
    )
    assert resolve_transcript(
        f"{session_with_subagents}/agent-b7", "/", config_home.where
    ).path == str(session_with_subagents.parent / "agent-b7.jsonl")


def test_locators_with_slashes_still_find_sessions(
    config_home: ConfigHome, session_with_subagents: Path
) -> None:
    """A path or a title such as "fix/agent-loop" finds a session, not a sub-agent."""
    write_session(
        config_home.project(),
        OTHER_ID,
        [*conversation(1, session_id=OTHER_ID), custom_title("fix/agent-loop", OTHER_ID)],
    )
    for words in (
        "fix/agent-loop",
        OTHER_ID,
        str(session_with_subagents.parent / f"{OTHER_ID}.jsonl"),
    ):
        assert resolve_transcript(words, CWD, config_home.where).session_id == OTHER_ID
    assert resolve_transcript(None, CWD, config_home.where).session_id in {SESSION, OTHER_ID}
    assert not is_subagent_locator("/some/path/agent-x")
    assert not is_subagent_locator("/agent-x")


def test_an_unknown_sub_agent_is_reported_with_the_existing_ones(
    config_home: ConfigHome, session_with_subagents: Path
) -> None:
    """The error lists all sub-agents if the name is unknown, and the matches if it is ambiguous."""
    with pytest.raises(SessionNotFound) as caught:
        resolve_transcript("1111/agent-zz", CWD, config_home.where)
    assert caught.value.remedy == "It started agent-a1b2c3, agent-a1ff, agent-b7."
    with pytest.raises(AmbiguousLocator) as several:
        resolve_transcript("1111/agent-a1", CWD, config_home.where)
    assert [row["session_id"] for row in several.value.candidates] == [
        f"{SESSION}/agent-a1b2c3",
        f"{SESSION}/agent-a1ff",
    ]
    with pytest.raises(SessionNotFound):
        resolve_transcript("nope/agent-a1", CWD, config_home.where)


def test_full_and_short_names_of_a_sub_agent_are_locators(
    config_home: ConfigHome, session_with_subagents: Path, tmp_path: Path
) -> None:
    """A sub-agent's full and short names are locators.

    A transcript outside the projects is named by its path.
    """
    one = resolve_transcript("1111/agent-b7", CWD, config_home.where)
    assert names_of_transcript(one, config_home.where) == TranscriptNames(
        f"{SESSION}/agent-b7", "11111111/agent-b7"
    )
    write_session(config_home.project("/other"), f"{SESSION[:-1]}2", conversation(1))
    assert names_of_transcript(one, config_home.where).short_name == f"{SESSION}/agent-b7"
    strange = write_session(tmp_path / "a b", SESSION, conversation(1))
    names = names_of_transcript(
        resolve_transcript(strange, "/", config_home.where), config_home.where
    )
    assert (names.full_name, names.make_reference(3)) == (strange, f"'{strange}:3'")
