"""A mark and the way back, where nothing can be made of them."""

from __future__ import annotations

import pytest

from resume_hooks.hooks.prompt import card
from resume_hooks.hooks.triggers import recognise
from tests.builders import ConfigHome
from tests.hooks.test_prompt import OTHER, event, is_pasted_over


@pytest.mark.parametrize("tail", [f"/resume {OTHER}", "/clear", f"cd /x && claude --resume {OTHER}"])
def test_a_paste_over_left_over_text(config_home: ConfigHome, tail: str) -> None:
    """Nothing is made, and nothing that was typed is lost."""
    is_pasted_over(config_home, f">rewind it was slower {tail}", "rewind it was slower")


def test_a_session_without_a_transcript(config_home: ConfigHome) -> None:
    """What can't be done there, what to do first, and the user's words."""
    trigger = recognise(">checkpoint my words")
    assert trigger is not None
    text = card(trigger, event("", session_id=OTHER))
    assert "There is nothing to mark: this session has no transcript yet.\n\nSend a prompt first." in text
    assert "Your text: my words" in text
