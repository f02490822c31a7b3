"""Tests of Codex as the model, with a script that replaces Codex: failures and the answer's schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resume_hooks.derive.child.draft import NO_PARENT
from resume_hooks.derive.model.headless import choose_model
from resume_hooks.derive.summary import Summary
from resume_hooks.errors import HeadlessFailed
from resume_hooks.parts.codex.model import CodexExec, make_strict_schema
from resume_hooks.paths import Where
from tests.builders import ConfigHome

SUMMARY_ANSWER = {"goal": "g", "state": "s"}


def event_line(kind: str, **fields: object) -> str:
    """Return a line that Codex prints."""
    return json.dumps({"type": kind, **fields})


def item_line(kind: str, text: str = "") -> str:
    """Return a line with a completed item."""
    return event_line("item.completed", item={"type": kind, "text": text})


def ask_stand_in(
    folder: Path, lines: list[str], *, more_commands: str = "", settings: str = ""
) -> Summary:
    """Ask a script that stands in for Codex and prints ``lines``, and return the answer in these lines.

    The script runs ``more_commands`` last.
    """
    (folder / "out").write_text("\n".join(lines))
    (folder / "config.toml").write_text(settings)
    program = folder / "codex"
    program.write_text(
        f'#!/bin/sh\ncat > {folder}/in\nprintf "%s\\n" "$@" > {folder}/words\ncat {folder}/out\n{more_commands}\n'
    )
    program.chmod(0o755)
    where = Where(
        {"PATH": f"{folder}:/usr/bin:/bin", "CODEX_HOME": str(folder), "HOME": str(folder)}
    )
    return CodexExec(where, "").ask("Say it.", "the text @x", Summary, max_seconds=20).data


OUTPUT_LINES_BY_ERROR = {
    "used a tool": [
        item_line("command_execution"),
        item_line("agent_message", json.dumps(SUMMARY_ANSWER)),
    ],
    "no answer: over the limit": [event_line("turn.failed", error={"message": "over\nthe limit"})],
    "no answer: codex ended with status 0": [],
    "in prose": [item_line("agent_message", "well ...")],
    "does not fit": [item_line("agent_message", '{"goal": 1}')],
}


@pytest.mark.parametrize("reason", OUTPUT_LINES_BY_ERROR)
def test_an_invalid_answer_of_the_model_is_reported(reason: str, tmp_path: Path) -> None:
    """If Codex gives no valid answer, the error states the reason on one line."""
    with pytest.raises(HeadlessFailed, match=reason) as caught:
        ask_stand_in(tmp_path, OUTPUT_LINES_BY_ERROR[reason])
    assert "\n" not in caught.value.message


def test_the_last_message_is_the_answer(tmp_path: Path) -> None:
    """The last message of Codex is the model's answer.

    Codex gets the text for the model on stdin, and its MCP servers are disabled.
    """
    lines = [
        item_line("reasoning"),
        item_line("agent_message", "first"),
        item_line("agent_message", json.dumps(SUMMARY_ANSWER)),
    ]
    assert ask_stand_in(tmp_path, lines, settings="[mcp_servers.a-1]\ncommand = 'x'\n").goal == "g"
    words = (tmp_path / "words").read_text().split("\n")
    assert "mcp_servers.a-1.enabled=false" in words
    assert not any("the text" in word for word in words)
    assert "the text @x" in (tmp_path / "in").read_text()
    with pytest.raises(HeadlessFailed, match="can't be used in a command-line option"):
        ask_stand_in(tmp_path, lines, settings='[mcp_servers."a b"]\ncommand = "x"\n')
    with pytest.raises(HeadlessFailed, match="no answer: oops"):
        ask_stand_in(tmp_path, [], more_commands="echo oops >&2; exit 3")


def test_the_schema_is_strict() -> None:
    """The schema requires all fields of every object, allows no others, and has no defaults."""
    schema = make_strict_schema(Summary.model_json_schema())
    assert set(schema["required"]) == set(Summary.model_fields)
    point = schema["$defs"]["Point"]
    assert (point["required"], point["additionalProperties"]) == (["text", "records"], False)
    assert "default" not in json.dumps(schema)
    assert schema["properties"]["done"]["items"] == {"$ref": "#/$defs/Point"}


def test_the_client_of_the_session_is_the_preferred_model(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """The model is the session's own client, or the other client if only that one is installed."""

    def names_of_models(*programs: str) -> list[str]:
        for name in ("claude", "codex"):
            (tmp_path / name).unlink(missing_ok=True)
        for name in programs:
            (tmp_path / name).write_text("")
            (tmp_path / name).chmod(0o755)
        where = Where({**config_home.environ, "PATH": str(tmp_path), "HOME": str(tmp_path)})
        return [
            choose_model(NO_PARENT._replace(agent=agent), where).name
            for agent in ("codex", "claude")
        ]

    assert names_of_models("claude", "codex") == ["codex", "haiku"]
    assert names_of_models("codex") == ["codex", "codex"]
    assert names_of_models("claude") == ["haiku", "haiku"]
    assert names_of_models() == ["codex", "haiku"]
