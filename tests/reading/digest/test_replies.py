"""Tests that a short reply of the user is shown with the question or option that it answers."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest.opening import format_opening
from tests.builders import ConfigHome
from tests.reading.digest.talk import Talk, entry_texts, request_texts

NUMBERED_OPTIONS = "There are three ways:\n1. Rewrite the parser\n2. **Wrap it** in a cache\n3) Leave it\n\nWhich one?"
LETTERED_OPTIONS = "Choose:\n- (A) Rewrite it\n- **B)** Wrap it\nWhat do you prefer?"
QUESTION = "I have fixed it. Shall I push the branch?"


@pytest.mark.parametrize(
    ("assistant_text", "reply", "answered"),
    [
        (NUMBERED_OPTIONS, "3", "3) Leave it"),
        (NUMBERED_OPTIONS, "the second", "2. **Wrap it** in a cache"),
        (NUMBERED_OPTIONS, "option 1 please", "1. Rewrite the parser"),
        (NUMBERED_OPTIONS, "1 and 2", "1. Rewrite the parser / 2. **Wrap it** in a cache"),
        (NUMBERED_OPTIONS, "4", "Which one?"),
        (LETTERED_OPTIONS, "b", "- **B)** Wrap it"),
        ("### Approach A: cut it\n### Approach B: keep it\nWhich?", "A", "### Approach A: cut it"),
        (QUESTION, "yes", "Shall I push the branch?"),
        (QUESTION, "no, not yet", "Shall I push the branch?"),
        (
            "Done.\n\nIf you want, I can:\n- Add hooks\n- Wire the CLI",
            "yes",
            "If you want, I can: Add hooks / Wire the CLI",
        ),
        ("Done. If you want, I can:", "yes", ""),
        (QUESTION, "run the tests", ""),
        ("It is done.", "yes", ""),
        (NUMBERED_OPTIONS, "why not all three of them at once, what would break then?", ""),
    ],
)
def test_a_short_reply_quotes_the_question(
    config_home: ConfigHome, assistant_text: str, reply: str, answered: str
) -> None:
    """A short reply such as "3" or "yes" is followed by the option or question that it answers."""
    digest = (
        Talk().prompt("go").says(assistant_text).prompt(reply).says("Good.").digest(config_home)
    )
    expected = f'{reply}\n[in answer to: "{answered}"]' if answered else reply
    assert request_texts(digest) == ["go", expected]
    assert len(format_opening(digest, 600).text) <= 600


def test_equal_replies_are_both_shown(config_home: ConfigHome) -> None:
    """Two equal replies are both shown, each with its own question."""
    talk = Talk().prompt("go").says("Push it?").prompt("yes").says("Merge it?").prompt("yes")
    assert request_texts(talk.digest(config_home))[1:] == [
        'yes\n[in answer to: "Push it?"]',
        'yes\n[in answer to: "Merge it?"]',
    ]


@pytest.mark.parametrize(
    ("answered", "is_choice"),
    [("Red", True), ("what is the difference between them", False), ("Why? I like both.", False)],
)
def test_a_question_instead_of_a_choice_is_not_an_answer(
    config_home: ConfigHome, answered: str, is_choice: bool
) -> None:
    """An answer that asks a question is shown in the talk but not listed as a choice."""
    asked = {"questions": [{"question": "Which colour?"}]}
    told = f'User has answered your questions: "Which colour?"="{answered}"'
    digest = Talk().prompt("go").calls("AskUserQuestion", asked, told).digest(config_home)
    assert bool(entry_texts(digest, "answers")) is is_choice
    assert request_texts(digest)[-1] == f"Which colour? -> {answered}"
