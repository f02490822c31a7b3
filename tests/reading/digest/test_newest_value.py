"""Tests that a newer statement of the user replaces an older one about the same thing."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.opening import format_whole_digest
from resume_hooks.reading.digest.reversals import (
    find_indexes_of_corrected_sentences,
    find_indexes_of_revoked_statements,
)
from resume_hooks.sessions.locate import session_file
from tests.builders import SESSION, ConfigHome, assistant, user, write_session


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Keep the size of an upload at 64 MB.", "The size of an upload must stay at 96 MB."),
        ("Keep the cache of the thumbnails at 2 GB.", "Actually, the cache of the thumbnails must be 3 GB."),
        ("We need to bring the first paint to 900 ms.", "Make it 700 ms for the first paint."),
        ("The owner of the payments service is Ilse.", "The owner of the payments service is now Marco."),
        ("I prefer imperative mood for the commit messages.", "For the commit messages use past tense instead."),
        ("Never run the purge job outside host-19.", "Actually, never run the purge job outside host-23."),
        ("The retry budget of the importer is 7 attempts.", "You get 9 attempts as the retry budget of the importer."),
        ("Let's use Docker for the sandbox of the agent.", "ok. use podman instead of docker, it works the same."),
        ("We go with Ruby 31 for the scripts.", "Then we should use ruby 30, as the server does."),
        ("Node 22 seems good.", "Let's stay on node 20."),
        ("The log of the nightly job is a.txt.", "New rule for the log of the nightly job: b.txt."),
    ],
)  # fmt: skip
def test_a_new_value_replaces_the_old_one(older: str, newer: str) -> None:
    """A statement with a new value for the same thing revokes the older statement."""
    assert find_indexes_of_revoked_statements([older, "The tests are slow.", newer]) == {0: 2}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (
            "Never run the fuzzer outside the sandbox.",
            "Actually, never run the chaos monkey outside the drill.",
        ),
        ("Add a test for the parser.", "Actually, fix the parser."),
        (
            "158.5 npm error This is an error with npm itself.",
            "166.9 npm error This is an error with npm itself.",
        ),
        ("Test it on docker, too, and use its log.", "Use podman instead of docker for it."),
        ("Go with option 2 for the names.", "Use option 3 for the dates."),
        ("Use ruby 31 and ruby 30 in the tests.", "Use ruby 32 on the server."),
        ("Is it worth the work, and should we use ruby 31 here?", "Use ruby 30."),
        (
            "The port of the staging database is 6543.",
            "The port of the test database of the mailer is 7001.",
        ),
    ],
)
def test_a_similar_statement_is_not_a_change(older: str, newer: str) -> None:
    """A similar statement about a different subject does not revoke the older statement."""
    rest = [
        "Never run the purge job outside of it.",
        "Never run the scripts outside of it.",
        "Never run it outside.",
    ]
    assert find_indexes_of_revoked_statements([*rest, older, newer]).get(3) is None


def test_a_statement_of_the_user_revokes_a_sentence_of_the_assistant() -> None:
    """A later statement of the user with a different value revokes a sentence of the assistant."""
    found, wrong = (
        "The host of the build cache is cache-07.",
        "The host of the build cache is now cache-11.",
    )
    assert list(find_indexes_of_corrected_sentences([(1, found)], [(2, wrong)])) == [(0, 0)]
    assert list(find_indexes_of_corrected_sentences([(3, found)], [(2, wrong)])) == []
    assert (
        list(
            find_indexes_of_corrected_sentences(
                [(1, found)], [(2, "The host of the build cache is slow.")]
            )
        )
        == []
    )


def test_any_statement_can_revoke_a_demand(config_home: ConfigHome) -> None:
    """A demand that any later statement revokes is marked in the talk and not listed as a constraint."""
    records = [
        user("We need to bring the first paint of the dashboard to 900 ms.", uuid="u1"),
        assistant("Understood.", uuid="a1", parent="u1", ts=1),
        user("Make it 700 ms for the first paint of the dashboard.", uuid="u2", parent="a1", ts=2),
        assistant("Understood.", uuid="a2", parent="u2", ts=3),
    ]
    path = write_session(config_home.project(), SESSION, records)
    digest = build_digest(session_file(str(path)), config_home.where)
    assert not any("900 ms" in entry.text for entry in digest.section_entries("constraints"))
    assert "[superseded at :2:" in format_whole_digest(digest)
