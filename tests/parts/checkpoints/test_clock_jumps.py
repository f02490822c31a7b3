"""A clock that jumps between a checkpoint and its rewind."""

from __future__ import annotations

import json

import pytest

from resume_hooks.hooks import prompt
from resume_hooks.parts.checkpoints import state as checkpoint_state
from tests.builders import SESSION, ConfigHome, conversation
from tests.test_clock_jumps import YEAR, Clock, hands, path, send

__all__ = ["hands", "path"]


@pytest.mark.parametrize("jump", [-YEAR, -60, 0, 86_400])
def test_between_a_checkpoint_and_its_rewind(config_home: ConfigHome, hands: Clock, path: str, jump: float) -> None:
    """A mark outlives it: where it was set is told by the record, not by the time."""
    assert "checkpoint" in send(prompt.main, path, prompt=">checkpoint goal")["reason"]
    hands.ahead = jump
    assert checkpoint_state.find(SESSION) is not None
    with open(path, "ab") as stream:
        stream.writelines(json.dumps(record).encode() + b"\n" for record in conversation(8)[12:])
    said = send(prompt.main, path, prompt=">rewind what came of it")["reason"]
    assert "resume-hooks failed" not in said
    assert len(list(config_home.project().glob("*.jsonl"))) == 2, said
