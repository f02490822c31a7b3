"""Tests of the test harness: Codex contacts only the mock, and its requests can be compared."""

from __future__ import annotations

import json

from tests.parts.codex.e2e.client import PROBE_PROMPT, CodexHome, thread_id_of_path
from tests.parts.codex.e2e.responses import (
    Item,
    item_text,
    join_input_texts,
    message_item,
    strip_hidden_fields,
)


def test_a_resumed_session_sends_its_conversation(every_codex: CodexHome) -> None:
    """The request of a resumed session has the earlier call and answer, and then the new prompt."""
    client, api = every_codex, every_codex.api

    def answer_list_request(request: Item) -> list[Item] | None:
        tools = {tool.get("name") for tool in request.get("tools", [])}
        if "list" not in item_text(request["input"][-1]):
            return [message_item("that was all")]
        name = "exec_command" if "exec_command" in tools else "shell_command"
        words = {"cmd" if name == "exec_command" else "command": "echo from the shell"}
        return [
            {
                "type": "function_call",
                "id": "f",
                "call_id": "c1",
                "name": name,
                "arguments": json.dumps(words),
            },
        ]

    api.script = answer_list_request
    done = client.run("exec", "--skip-git-repo-check", "list something")
    assert done.returncode == 0, done.stderr
    (rollout,) = client.rollouts()
    sent = client.resume(thread_id_of_path(rollout))
    assert "from the shell" in join_input_texts(sent)
    assert "that was all" in [item_text(item) for item in sent if item.get("role") == "assistant"]
    assert item_text(sent[-1]) == PROBE_PROMPT
    kept = [json.loads(line) for line in rollout.read_bytes().splitlines()]
    items = [
        strip_hidden_fields(record["payload"])
        for record in kept
        if record["type"] == "response_item"
    ]
    assert sent[-1] in items
