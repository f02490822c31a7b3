"""Tests of Codex as the model for summaries. Codex can run no tool and stores no session."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from resume_hooks.cli.main import cli
from resume_hooks.derive.model.headless import choose_model
from resume_hooks.derive.summary import Summary
from resume_hooks.errors import HeadlessFailed
from resume_hooks.parts.codex.model import CodexExec
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import readable_session
from tests.parts.codex import rollouts
from tests.parts.codex.e2e.client import PROVIDER_NAME, CodexHome
from tests.parts.codex.e2e.responses import Item, item_text, join_input_texts, message_item

SUMMARY_ANSWER = {
    "goal": "Mend the parser.",
    "state": "Half done.",
    **{key: [] for key in list(Summary.model_fields)[2:]},
}
HARMLESS_TOOL_NAMES = {"update_plan", "request_user_input", "view_image"}
"""The tools that the model keeps, because they run and write nothing.

In clients before 0.150, ``view_image`` shows a picture to the same model.
"""


def calls_of_every_tool(marker_files: list[Path]) -> list[Item]:
    """Return calls of every tool that could run a command or write a file."""
    touch = f"touch {marker_files[0]}"
    given = {
        "exec_command": {"cmd": touch},
        "shell": {"command": ["sh", "-c", touch]},
        "shell_command": {"command": touch},
    }
    found: list[Item] = [
        {
            "type": "function_call",
            "id": f"f{name}",
            "call_id": name,
            "name": name,
            "arguments": json.dumps(words),
        }
        for name, words in given.items()
    ]
    patch = f"*** Begin Patch\n*** Add File: {marker_files[0]}\n+x\n*** End Patch"
    return [
        *found,
        {
            "type": "custom_tool_call",
            "id": "p",
            "call_id": "p",
            "name": "apply_patch",
            "input": patch,
        },
    ]


def run_verb_for_data(verb: str, *words: str) -> Any:
    """Return the JSON data that a verb prints for the session."""
    done = CliRunner().invoke(cli, [verb, rollouts.THREAD_ID, *words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["data"]


def test_a_rollover_and_a_smart_trim_use_codex_without_tools(
    every_codex: CodexHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """When Codex writes a summary or chooses contents, it runs no tools, servers, hooks or notifications.

    Codex stores no session, and the child contains the summary.
    """
    client, api = every_codex, every_codex.api
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex").symlink_to(client.binary)
    marks = [tmp_path / name for name in ("ran", "server", "hooked", "notified")]
    settings = client.codex / "config.toml"
    server = f'\n[mcp_servers.one]\ncommand = "sh"\nargs = ["-c", "touch {marks[1]}; exec cat"]\n'
    settings.write_text(f'notify = ["touch", "{marks[3]}"]\n{settings.read_text()}{server}')
    hook = {"type": "command", "command": f"touch {marks[2]}"}
    hooks = {
        "hooks": {
            event: [{"hooks": [hook]}] for event in ("SessionStart", "UserPromptSubmit", "Stop")
        }
    }
    (client.codex / "hooks.json").write_text(json.dumps(hooks))
    for key, value in (client.env() | {"PATH": f"{tmp_path}/bin:{os.defpath}"}).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(client.root / "claude"))
    monkeypatch.setenv("RESUME_HOOKS_HOME", str(client.root / "state"))
    turns = [
        rollouts.message_line(role, words)
        for role, words in (("user", "go on"), ("assistant", "half is done"))
    ]
    listing = [rollouts.call_line("c1", "ls -R"), rollouts.output_line("c1", "a file\n" * 4_000)]
    talk = [rollouts.message_line("user", "mend the parser", 1), *listing, *turns, *turns, *turns]
    path = rollouts.write_rollout(
        client.codex, [rollouts.meta_line(model_provider=PROVIDER_NAME), *talk]
    )
    assert isinstance(choose_model(readable_session(str(path), Where()), Where()), CodexExec)
    answers: list[list[Item]] = [
        calls_of_every_tool(marks),
        [message_item(json.dumps(SUMMARY_ANSWER))],
    ]

    def take_next_answer(_request: dict[str, Any]) -> list[Item]:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    api.script = take_next_answer
    before = client.rollouts()
    data = run_verb_for_data("rollover")
    assert data["summary"]["failure"] is None, data
    assert data["summary"]["spent"]["tokens_in"] >= 1000
    assert "goal: Mend the parser." in Path(data["file"]).read_text("utf-8")
    assert [mark for mark in marks if mark.exists()] == []
    assert len(client.rollouts()) == len(before) + 1
    first = api.requests[0]
    assert {
        tool.get("name") or tool.get("type") for tool in first.get("tools", [])
    } <= HARMLESS_TOOL_NAMES
    assert first["text"]["format"]["type"] == "json_schema"
    assert set(first["text"]["format"]["schema"]["required"]) == set(Summary.model_fields)
    assert "mend the parser" in join_input_texts(api.inputs[0])
    outputs = [item_text(item) for item in api.inputs[1] if item["type"].endswith("_output")]
    assert len(outputs) == 4
    assert all("unsupported" in text for text in outputs), outputs

    chosen = {"choices": [{"number": 1, "description": "a listing", "rationale": "not needed"}]}
    answers[:] = [[message_item(json.dumps(chosen))]]
    trimmed = run_verb_for_data("trim", "--smart", "--yes")
    assert [row["target"] for row in trimmed["smart"]["choices"]] == ["ls -R"]
    answers[:] = [[message_item("ok")]]
    outputs = [
        item_text(one)
        for one in client.resume(trimmed["session_id"])
        if one["type"] == "function_call_output"
    ]
    assert '"a listing"' in outputs[0]

    answers[:] = [[message_item("in prose")]]
    with pytest.raises(HeadlessFailed, match="in prose"):
        CodexExec(Where(), "").ask("Say", "text", Summary, max_seconds=60)
