"""Tests of a plain search, which runs without click and prints exactly what it would print with click."""

from __future__ import annotations

import json

import pytest

from resume_hooks.cli.plain_search import ParsedSearchCommand, parse_plain_search
from tests.builders import ConfigHome, session_id
from tests.cli.conftest import Cli
from tests.search.asking import write_talk

CLICK_ONLY_OPTION = ("--max-chars", "8000")
"""An option that only click's command line parses, with its default value."""


@pytest.fixture(autouse=True)
def write_two_sessions(config_home: ConfigHome) -> None:
    """Write two sessions, one in the current folder and one in another folder."""
    here = str(config_home.root / "here")
    write_talk(
        config_home, 1, "why did we drop redis?", "because of the \x1b[1mtimeouts\x1b[0m", cwd=here
    )
    write_talk(config_home, 2, "redis elsewhere", "yes")


@pytest.mark.parametrize(
    "words",
    [
        ["redis", "timeouts"],
        ["--all", "redis"],
        ["--all", "--limit", "1", "redis"],
        ["redis", "--or", "why dropped", "--json"],
        ["--json", "--all", "--", "redis", "-elsewhere"],
        ["zqxjkv"],
    ],
    ids=" ".join,
)
def test_a_plain_search_answers_like_click(cli: Cli, words: list[str]) -> None:
    """A search without click has the same exit code and the same output as a search with click.

    This is also true if a model runs the search.
    """
    for environ in ({}, {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session_id(2)}):
        assert parse_plain_search(["search", *words]) is not None
        assert parse_plain_search(["search", *CLICK_ONLY_OPTION, *words]) is None
        cli("search", "index")
        plain = cli("search", *words, environ=environ)
        by_click = cli("search", *CLICK_ONLY_OPTION, *words, environ=environ)
        assert (plain.returncode, plain.stdout, plain.stderr) == (
            by_click.returncode,
            by_click.stdout,
            by_click.stderr,
        )
        assert plain.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["read", "redis"],
        ["search", "--since", "2w", "redis"],
        ["search", "-x", "redis"],
        ["search", "--", "--no-such"],
        ["search", "--limit", "0", "redis"],
        ["search", "--limit"],
        ["search", "redis", "--or"],
        ["search", "--all=yes", "redis"],
        ["search", "--help"],
    ],
    ids=" ".join,
)
def test_click_runs_all_other_searches(words: list[str]) -> None:
    """A search with other options, with ``--help`` or with an error is run by click."""
    assert parse_plain_search(words) is None


def test_a_plain_search_is_parsed() -> None:
    """``parse_plain_search`` accepts options in any position before ``--``."""
    asked = parse_plain_search(
        ["search", "why", "--all", "--or", "--json", "--limit", "3", "--", "-x"]
    )
    assert asked == ParsedSearchCommand(
        ("why", "-x"), ("--json",), covers_all_projects=True, as_json=False, max_hits=3
    )


def test_an_error_in_a_plain_search_is_reported_once(cli: Cli) -> None:
    """A search without words prints its error once."""
    done = cli("search")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"No words to search for") == 1
    failed = cli("search", "--json")
    assert failed.returncode == 2
    assert json.loads(failed.stdout)["error"]["message"] == "No words to search for"
