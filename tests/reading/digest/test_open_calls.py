"""Tests that a call waiting for the user is in the opening, with its arguments."""

from __future__ import annotations

from resume_hooks.reading.digest.entries import MessageKind
from resume_hooks.reading.digest.opening import format_opening
from tests.builders import ConfigHome
from tests.reading.digest.talk import REJECTION_TEXT, Talk, message_texts

LONG_PLAN = "# Move the parser\n\n" + "\n".join(
    f"{number}. Step {number} of it" for number in range(60)
)
LONG_CODE = "\n".join(f"    line_{number} = {number}" for number in range(40))
REFUSAL_WITH_REMARK = f"{REJECTION_TEXT} To tell you how to proceed, the user said:\nnot so"


def test_an_unanswered_plan_is_shown_completely(config_home: ConfigHome) -> None:
    """An opening of the usual size shows every step of a proposed plan that the user has not answered."""
    digest = (
        Talk().prompt("go").calls("ExitPlanMode", {"plan": LONG_PLAN}, None).digest(config_home)
    )
    shown = format_opening(digest, 48_000).text
    assert "proposed, and not answered yet, CALL :1\n  ExitPlanMode\n  [plan:]\n" in shown
    assert all(f"Step {number} of it" in shown for number in range(60))


def test_an_edit_without_a_result_is_shown_completely(config_home: ConfigHome) -> None:
    """An opening of the usual size shows the old and the new text of an edit that has no result.

    An opening of 1,000 characters shows less and still fits.
    """
    given = {"file_path": "/home/user/proj/a.py", "old_string": "x = 1", "new_string": LONG_CODE}
    digest = Talk().prompt("go").calls("Edit", given, None).digest(config_home)
    shown = format_opening(digest, 48_000).text
    assert "[old_string:]\n  x = 1\n  [new_string:]\n      line_0 = 0\n" in shown
    assert "line_20 = 20" in shown
    assert len(format_opening(digest, 1_000).text) <= 1_000


def test_an_unanswered_question_has_its_options(config_home: ConfigHome) -> None:
    """An unanswered question is shown with all its options and their descriptions."""
    options = [
        {"label": "Keep", "description": "as it is"},
        {"label": "Drop", "description": "all"},
    ]
    given = {"questions": [{"question": "Keep or drop?", "options": options}]}
    digest = Talk().prompt("go").calls("AskUserQuestion", given, None).digest(config_home)
    (text,) = message_texts(digest, MessageKind.PENDING)
    asked = "AskUserQuestion\n[question:]\nKeep or drop?\n"
    assert text == f"{asked}[option:]\nKeep\nas it is\n[option:]\nDrop\nall"


def test_a_refused_edit_stays_until_it_is_replaced(config_home: ConfigHome) -> None:
    """An edit that the user refused is shown in full until the same file is edited again."""
    given = {"file_path": "/home/user/proj/a.py", "old_string": "x = 1", "new_string": LONG_CODE}
    talk = Talk().prompt("go").calls("Edit", given, REFUSAL_WITH_REMARK, error=True)
    shown = format_opening(talk.digest(config_home), 48_000).text
    assert "proposed, and refused by the user, CALL :1\n  Edit\n" in shown
    assert "line_39 = 39" in shown
    talk.edits("/home/user/proj/a.py")
    assert message_texts(talk.digest(config_home), MessageKind.REFUSED) == []


def test_a_refused_plan_is_shown_until_another_plan_is_approved(config_home: ConfigHome) -> None:
    """A plan that the user refused is shown in full until another plan is approved."""
    talk = (
        Talk()
        .prompt("go")
        .calls("ExitPlanMode", {"plan": LONG_PLAN}, REFUSAL_WITH_REMARK, error=True)
    )
    assert "Step 59 of it" in format_opening(talk.digest(config_home), 48_000).text
    talk.calls("ExitPlanMode", {"plan": "# Do less"}, "approved")
    assert message_texts(talk.digest(config_home), MessageKind.REFUSED) == []


def test_a_plan_answered_with_text_is_not_refused(
    config_home: ConfigHome,
) -> None:
    """A plan that the user answered with a text is not marked as refused, because the user may agree."""
    answer = f"{REJECTION_TEXT} To tell you how to proceed, the user said:\nwrite it down first"
    talk = Talk().prompt("go").calls("ExitPlanMode", {"plan": LONG_PLAN}, answer, error=True)
    shown = format_opening(talk.digest(config_home), 48_000).text
    assert "proposed, and answered by the user with words" in shown
    assert "Step 59 of it" in shown
    assert "refused" not in shown


def test_a_remark_with_a_refused_call_is_the_last_request_until_answered(
    config_home: ConfigHome,
) -> None:
    """A remark that the user made when refusing a call is the last request until the assistant answers."""
    talk = Talk().prompt("wire up the hooks")
    talk.calls("Bash", {"command": "git switch -c wiring"}, REFUSAL_WITH_REMARK, error=True)
    shown = format_opening(talk.digest(config_home), 48_000).text
    assert "last request, USER :2\n  not so\n" in shown
    talk.edits("/home/user/proj/a.py").says("The hooks are wired up.")
    shown = format_opening(talk.digest(config_home), 48_000).text
    assert "last request, USER :0\n  wire up the hooks\n" in shown
    assert "refused by the user: Bash git switch -c wiring: not so" in shown


def test_the_code_in_the_last_answer_is_shown_completely(config_home: ConfigHome) -> None:
    """A long code block in the last answer is shown in full if the opening is large enough.

    Long code blocks in earlier answers are shortened.
    """
    talk = Talk().prompt("go").says(f"First:\n```\n{LONG_CODE}\n```\nThat is it.")
    talk.prompt("again").says(
        f"Second:\n```\n{LONG_CODE.replace('line', 'row')}\n```\nThat is all."
    )
    shown = format_opening(talk.digest(config_home), 48_000).text
    assert "row_20 = 20" in shown
    assert "line_20 = 20" not in shown
    brief = format_opening(talk.digest(config_home), 1_600).text
    assert "That is all." in brief
    assert "row_20 = 20" not in brief


def test_a_replaced_plan_is_marked(config_home: ConfigHome) -> None:
    """The plan with which the user started is marked as superseded after a newer plan was approved."""
    first = "Implement the following plan:\n\n# Move the parser"
    talk = Talk().prompt(first, planContent="# Move the parser").says("Done.")
    talk.prompt("now another").calls("ExitPlanMode", {"plan": "# Drop the parser"}, "approved")
    shown = format_opening(talk.digest(config_home), 48_000).text
    assert '[superseded at :3: "Implement the following plan:"]' in shown
