"""Tests of the size of the context window, which comes from the settings or the model.

Every verb uses this size.
"""

from __future__ import annotations

import json

import pytest

from resume_hooks.transcripts.records import Record
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    assistant,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("model", "window"),
    {
        "claude-haiku-4-5-20251001": 200_000,
        "us.anthropic.claude-opus-4-5-20251101-v1:0": 200_000,
        "claude-opus-4@20250514": 200_000,
        "claude-3-7-sonnet-20250219": 200_000,
        "claude-opus-4-6": 1_000_000,
        "claude-sonnet-4-5-20250929": 1_000_000,
        "claude-haiku-5-5": 1_000_000,
        "unknown": 1_000_000,
    }.items(),
)
def test_a_large_context_does_not_change_the_window(
    config_home: ConfigHome, cli: Cli, model: str, window: int
) -> None:
    """The window is the model's, even if the client counted more tokens than fit into it.

    The setting ``context_window`` has precedence over the model.
    """
    answer = assistant("done", uuid="a1", parent="u1", tokens=206_000)
    answer["message"]["model"] = model
    write_session(config_home.project(CWD), SESSION, [user("read it", uuid="u1"), answer])
    info = json.loads(cli("info", SESSION, "--json").stdout)["data"]
    (row,) = json.loads(cli("sessions", "--all", "--json").stdout)["data"]["sessions"]
    assert info["context"]["window"] == window
    assert (
        info["context"]["percent"]
        == row["context"]["percent"]
        == round(100 * 206_000 / (window - 20_000))
    )
    cli("config", "context_window", "500000")
    info = json.loads(cli("info", SESSION, "--json").stdout)["data"]
    assert info["context"]["window"] == 500_000


@pytest.mark.parametrize(
    ("model", "version", "token_count", "percent"),
    [
        ("claude-opus-5", "2.1.329", 190_000, 19),
        ("claude-sonnet-5-5", "2.1.329", 190_000, 19),
        ("claude-opus-4-8", "2.1.329", 190_000, 19),
        ("claude-opus-4-8", "2.1.112", 190_000, None),
        ("claude-opus-4-6", "2.1.329", 90_000, 50),
        ("claude-opus-4-6", "2.1.329", 194_000, None),
        ("another-model", "2.1.329", 90_000, None),
    ],
)
def test_the_percentage_needs_a_known_window(
    config_home: ConfigHome,
    cli: Cli,
    model: str,
    version: str,
    token_count: int,
    percent: int | None,
) -> None:
    """The percentage is shown only if the model and the client's version determine the window."""
    answer = assistant("done", uuid="a1", parent="u1", tokens=token_count) | {"version": version}
    answer["message"]["model"] = model
    write_session(config_home.project(CWD), SESSION, [user("read it", uuid="u1"), answer])
    info = json.loads(cli("info", SESSION, "--json").stdout)["data"]
    full = json.loads(cli("resume", SESSION, "--json").stdout)["data"]
    (row,) = json.loads(cli("sessions", "--all", "--json").stdout)["data"]["sessions"]
    assert (
        info["context"]["percent"]
        == row["context"]["percent"]
        == full["context"]["percent"]
        == percent
    )
    for words in (["info", SESSION], ["resume", SESSION]):
        assert ("of an unknown window" in cli(*words).stdout.decode()) is (percent is None)


def two_turns_with_output(
    output_line_count: int, first_tokens: int, second_tokens: int
) -> list[Record]:
    """Return two turns with these context sizes; the first turn has an output of ``output_line_count`` lines."""
    return [
        user("read it", uuid="u1"),
        tool_use("t1", uuid="a1", parent="u1", tool_input={"file_path": "/x"}),
        tool_result("t1", "a line of output\n" * output_line_count, uuid="u2", parent="a1"),
        assistant("done", uuid="a2", parent="u2", tokens=first_tokens),
        user("and now?", uuid="u3", parent="a2"),
        assistant("done again", uuid="a3", parent="u3", tokens=second_tokens),
    ]


def test_every_verb_uses_the_same_limit_for_percentages(config_home: ConfigHome, cli: Cli) -> None:
    """Every verb calculates percentages from the same limit.

    The limit is the window without the tokens that are reserved for the answer.
    """
    write_session(config_home.project(CWD), SESSION, two_turns_with_output(4_000, 100_000, 104_000))
    for window, percent in ((None, 58), (150_000, 80)):
        settings = {} if window is None else {"autoCompactWindow": window}
        (config_home.config / "settings.json").write_text(json.dumps(settings))
        info = json.loads(cli("info", SESSION, "--json").stdout)["data"]
        (row,) = json.loads(cli("sessions", "--all", "--json").stdout)["data"]["sessions"]
        trim = cli("trim", SESSION, "--dry-run", "--keep-recent", "0").stdout.decode()
        assert info["context"]["percent"] == row["context"]["percent"] == percent
        assert f"({percent} % of" in trim


@pytest.mark.parametrize(
    "verb",
    [["fork", "--turn", "1"], ["trim", "--keep-recent", "0", "--min-savings", "1"], ["handoff"]],
)
def test_a_child_inherits_the_window_of_its_parent(
    config_home: ConfigHome, cli: Cli, verb: list[str]
) -> None:
    """A child inherits its parent's window of a million tokens. All percentages are calculated from it."""
    records = two_turns_with_output(40_000, 150_000, 240_000)
    for row in records:
        if row["type"] == "assistant":
            row["message"]["model"] = "claude-opus-4-6"
    write_session(config_home.project(CWD), SESSION, records)
    name = SESSION
    for made in (verb, ["fork"]):
        name = json.loads(cli(made[0], name, *made[1:], "--json").stdout)["data"]["session_id"]
        info = json.loads(cli("info", name, "--json").stdout)["data"]["context"]
        rows = json.loads(cli("sessions", "--all", "--json").stdout)["data"]["sessions"]
        full = json.loads(cli("resume", name, "--json").stdout)["data"]["context"]
        (listed,) = [row["context"] for row in rows if row["session_id"] == name]
        assert {each["window"] for each in (info, listed, full)} == {1_000_000}
