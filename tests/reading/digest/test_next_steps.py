"""Tests of a digest's next steps, which are quoted from the conversation."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest.opening import format_opening
from tests.builders import ConfigHome
from tests.reading.digest.talk import Talk, entry_line_numbers, entry_texts


@pytest.mark.parametrize(
    ("answer_text", "row"),
    [
        (
            "Fixed. Want me to push it? If so, to which branch?",
            'the answer to: "Want me to push it? If so, to which branch?"',
        ),
        (
            "Done. Ready to commit if you'd like to have it in.",
            'not answered by the user yet: "Ready to commit if you\'d like to have it in."',
        ),
        (
            "Fixed. Now let me run the tests.",
            'announced but not done: "Now let me run the tests."',
        ),
        (
            "Fixed it.\n\nYou may want to run `mise install` after that.",
            'named in the last answer: "You may want to run `mise install` after that."',
        ),
        (
            "Conflicts fixed. The backup branch is there: delete it once you're satisfied.",
            'named in the last answer: "The backup branch is there: delete it once you\'re satisfied."',
        ),
    ],
)
def test_the_end_of_the_last_answer_names_the_next_step(
    config_home: ConfigHome, answer_text: str, row: str
) -> None:
    """The end of the last answer is quoted as the next step.

    The next step may be a question, an offer, an announcement, or a sentence about remaining work.
    """
    talk = Talk().prompt("fix it").says(answer_text)
    assert entry_line_numbers(talk.digest(config_home), "next") == {row: talk.last_line_number}


@pytest.mark.parametrize(
    "answer_text",
    [
        "Committed as `7d69a31` on `naming`.",
        "Done. Ready for your next instructions.",
        "It reads the file once. If it is missing, it is created.",
    ],
)
def test_an_answer_that_names_no_step_adds_no_next_step(
    config_home: ConfigHome, answer_text: str
) -> None:
    """If the last answer names no next step, the digest has none."""
    assert entry_texts(Talk().prompt("fix it").says(answer_text).digest(config_home), "next") == []


def test_offered_steps_are_quoted_once(config_home: ConfigHome) -> None:
    """Steps under "Next steps (pick one)" are quoted in a single entry."""
    said = "Built it.\n\nNext steps (pick one):\n1. Run the oracle.\n2. Ask me to test it."
    (row,) = entry_texts(Talk().prompt("go").says(said).digest(config_home), "next")
    assert "Run the oracle. Ask me to test it." in row


def test_optional_next_steps_are_quoted_in_one_entry(config_home: ConfigHome) -> None:
    """Steps under "Next step options" are joined by "or" in a single entry."""
    said = "Built it.\n\nNext step options:\n1. Run planning for it.\n2. Skip to the tests."
    assert entry_texts(Talk().prompt("go").says(said).digest(config_home), "next") == [
        'named in the last answer: "Run planning for it." or "Skip to the tests."'
    ]


def test_steps_under_a_heading_are_quoted(config_home: ConfigHome) -> None:
    """The list items under "Next steps" are quoted one by one, without the items nested below them."""
    steps = "1. Wire up the oracle\n   - in the box\n2. Test it end to end"
    said = f"Built it.\n\n## Next steps\n\n{steps}\n\n## Files\n- a.py"
    assert entry_texts(Talk().prompt("go").says(said).digest(config_home), "next") == [
        'named in the last answer: "Wire up the oracle"',
        'named in the last answer: "Test it end to end"',
    ]


@pytest.mark.parametrize(
    ("later_prompt", "is_named"), [("commit and push it", True), ("now the other one", False)]
)
def test_steps_stay_open_while_the_work_is_only_committed(
    config_home: ConfigHome, later_prompt: str, is_named: bool
) -> None:
    """Next steps stay listed if the user only asked for a commit, but not after another request."""
    talk = Talk().prompt("go").says("Built it.\n\nRemaining:\n- Test it end to end")
    shown = entry_texts(talk.prompt(later_prompt).says("Done.").digest(config_home), "next")
    assert shown == (
        ['named in an answer before the last commit: "Test it end to end"'] if is_named else []
    )


def test_work_that_the_user_put_off_is_a_next_step(config_home: ConfigHome) -> None:
    """Work that the user postponed is listed as a next step in the user's words. A question is not."""
    talk = Talk().prompt("Let's worry about 21 later on. Do 17.").says("Done.")
    at = talk.last_line_number - 1
    talk.prompt("should we fix that in a separate PR?").says("No.")
    row = 'postponed by the user: "Let\'s worry about 21 later on."'
    assert entry_line_numbers(talk.digest(config_home), "next") == {row: at}


def test_a_step_that_a_call_carried_out_is_not_a_next_step(config_home: ConfigHome) -> None:
    """A step that was announced and then done by a tool call is not listed as a next step."""
    talk = Talk().prompt("go").says("Let me write the table tests.").edits("/home/user/proj/a.py")
    assert entry_texts(talk.digest(config_home), "next") == []


def test_a_question_is_shown_once(config_home: ConfigHome) -> None:
    """An unanswered question is shown as the next step, and not again as an open question."""
    digest = Talk().prompt("fix it").says("Which one do you prefer?").digest(config_home)
    rows = format_opening(digest, 8_000).text.split("\n")
    row = next(each for each in rows if "next step" in each)
    assert 'the answer to: "Which one do you prefer?"' in row
    assert not any("asked and not answered" in each for each in rows)


def test_a_code_block_cut_at_its_start_hides_no_question(config_home: ConfigHome) -> None:
    """A question after a long code block is found, even if the start of the code block was cut off."""
    said = "```\n" + "x = 1\n" * 400 + "```\nShall I push it?"
    assert entry_texts(Talk().prompt("go").says(said).digest(config_home), "questions") == [
        "Shall I push it?"
    ]
