"""Tests of a skill's remaining steps when the session ends."""

from __future__ import annotations

import pytest

from tests.builders import ConfigHome
from tests.reading.digest.talk import Talk, entry_notes, entry_texts

SHIP_SKILL = """Base directory for this skill: /skills/ship

# Ship Changes

Commit current changes, push to remote, and update the PR.

## Step 1: Analyze changes

1. Run `git diff --stat` and `git diff` to understand what changed
2. Never look at generated files when you analyze

## Step 2: Commit

1. Stage only the relevant files by name (never `git add -A` or `git add .`)
2. Commit. If hooks fail, diagnose and fix

## Step 3: Push

1. If not tracking, push with `git push -u origin <branch>`

## Step 4: Update PR

1. Find the open PR for the current branch: `gh pr view --json number,body,title`

## Rules

- Never commit files that look like secrets (.env, credentials, tokens)
"""
LOOP_SKILL = (
    "Base directory for this skill: /skills/release-loop\n## Phases\n\n| # | Phase | Invokes |\n|---|---|---|\n"
    "| 1 | Design | `designing` |\n| 2 | Ship | `shipping` |\n| 3 | Retro | `retrospective` |\n"
    + "More. "
    * 80
)


def _talk_with_ship_skill() -> Talk:
    talk = Talk().prompt("ship it").calls("Skill", {"skill": "ship"}, "Launching skill: ship")
    return talk.prompt(SHIP_SKILL, isMeta=True).runs("git status && git diff --stat", "M a.py")


def test_the_remaining_steps_of_a_skill_are_quoted(config_home: ConfigHome) -> None:
    """A skill's steps are listed, beginning with the step whose command ran last. Its rules follow."""
    talk = _talk_with_ship_skill().runs("gh pr view --json number", "no pull requests found")
    talk.runs("git add a.py .gitignore && git status", "On branch main").calls(
        "Bash", {"command": "git commit -m x"}, None
    )
    digest = talk.digest(config_home)
    first, *rows = entry_texts(digest, "skills")
    assert entry_notes(digest, "skills")[first] == "active: it has reached the first of these steps"
    assert [row.partition(" 1. ")[0] for row in rows[:3]] == [
        "Step 2: Commit", "Step 3: Push", "Step 4: Update PR",
    ]  # fmt: skip
    assert rows[0].endswith("2. Commit. If hooks fail, diagnose and fix")
    assert rows[3:] == ["Never commit files that look like secrets (.env, credentials, tokens)"]


def test_a_skill_without_commands_has_all_steps(config_home: ConfigHome) -> None:
    """If no command shows how far a skill got, all steps of the skill are listed."""
    digest = _talk_with_ship_skill().digest(config_home)
    assert entry_notes(digest, "skills")["ship"] == "active: its steps"
    assert sum(row.startswith("Step ") for row in entry_texts(digest, "skills")) == 4


def test_rules_are_quoted_in_full_or_omitted(config_home: ConfigHome) -> None:
    """A rule of a skill is quoted in full, even if it was wrapped. A rule that is too long is omitted.

    A rule that introduces a list is also omitted.
    """
    rules = """Base directory for this skill: /skills/x

## Rules

- Never push to a branch whose pull request was merged, because
  nobody looks at it any more
- Always mention these in the description of the change:
- Keep the title of every pull request below seventy characters

You MUST never edit a generated file by hand, since the
next build overwrites it without a question. More words.
"""
    long_rule = f"- Always write {'very ' * 100}short sentences\n"
    text = rules.replace("## Rules\n\n", f"## Rules\n\n{long_rule}")
    digest = Talk().prompt("go").prompt(text, isMeta=True).digest(config_home)
    assert entry_texts(digest, "skills")[1:] == [
        "Never push to a branch whose pull request was merged, because nobody looks at it any more",
        "Keep the title of every pull request below seventy characters",
        "You MUST never edit a generated file by hand, since the next build overwrites it without a question.",
    ]


def test_a_long_step_ends_with_a_whole_row(config_home: ConfigHome) -> None:
    """A long step is cut after a complete line, with an ellipsis at its end."""
    rows = "".join(
        f"{number}. Look at file {number} {'again ' * 20}now\n" for number in range(1, 6)
    )
    text = SHIP_SKILL.replace("## Step 4", f"{rows}\n## Step 4")
    talk = Talk().prompt("ship it").calls("Skill", {"skill": "ship"}, "Launching skill: ship")
    step = entry_texts(talk.prompt(text, isMeta=True).digest(config_home), "skills")[3]
    assert step.startswith("Step 3: Push 1. If not tracking")
    assert step.endswith("again now …")
    assert len(step) <= 400


def test_a_skill_without_visible_steps_ends_with_its_answer(config_home: ConfigHome) -> None:
    """If no command shows a step of a skill, the skill ends with an answer that asks nothing."""
    talk = _talk_with_ship_skill()
    assert entry_texts(talk.says("Shall I go on?").digest(config_home), "skills") != []
    talk = _talk_with_ship_skill()
    assert (
        entry_texts(talk.says("All clean: the findings are fixed.").digest(config_home), "skills")
        == []
    )


def test_the_assistant_may_name_the_current_step(config_home: ConfigHome) -> None:
    """A step that the assistant names is the current one, until another request ends the skill."""
    talk = Talk().prompt("release it").prompt(LOOP_SKILL, isMeta=True).says("May I merge it?")
    talk.prompt("approved").says("**Phase 2: Ship** is done, now **Phase 3: Retro**.").runs(
        "ls", "a.py"
    )
    assert entry_texts(talk.digest(config_home), "skills")[1] == "3 | Retro | `retrospective` |"
    talk.prompt("yes please, update the docs").runs("ls", "a.py")
    assert entry_texts(talk.digest(config_home), "skills") == []


@pytest.mark.parametrize(("last_sentence", "is_over"), [("", True), ("Shall I post it?", False)])
def test_a_skill_ends_with_the_answer_to_its_last_step(
    config_home: ConfigHome, last_sentence: str, is_over: bool
) -> None:
    """A skill is over after the answer to its last step, unless the answer asks a question."""
    talk = _talk_with_ship_skill().runs("git push", "ok").runs("gh pr view --json number", "12")
    talk.says(f"Pushed; the PR has the summary. {last_sentence}".rstrip())
    assert (entry_texts(talk.digest(config_home), "skills") == []) is is_over


LONG_REPORT = f"## Findings\n\n**High**\n{'- a.py reads past the end of its buffer. ' * 12}\n\nShall I fix it?"


@pytest.mark.parametrize(
    ("answer", "has_steps"),
    [
        (LONG_REPORT, False),
        (f"Step 2 is done.\n{LONG_REPORT}", True),
        ("## Findings\n**High**\nOne. Shall I fix it?", True),
    ],
)
def test_a_long_report_hides_the_steps_of_a_skill(
    config_home: ConfigHome, answer: str, has_steps: bool
) -> None:
    """After a long report, a skill is listed with its rules but without steps, until the next call."""
    talk = _talk_with_ship_skill().says(answer)
    first, *rows = entry_texts(talk.digest(config_home), "skills")
    assert first == "ship"
    assert any(row.startswith("Step ") for row in rows) is has_steps
    assert "Never commit files that look like secrets (.env, credentials, tokens)" in rows
    talk.runs("git commit -m x", "ok")
    assert entry_texts(talk.digest(config_home), "skills")[1].startswith("Step ")


def test_a_skill_with_a_running_background_command_is_not_over(config_home: ConfigHome) -> None:
    """The last step of a skill is listed while a background command that the skill started is running."""
    talk = _talk_with_ship_skill().runs("gh pr view --json number", "12")
    talk.runs("sleep 60 && gh pr checks", "Command running in background with ID: b1")
    digest = talk.says("I wait for the checks.").digest(config_home)
    assert [row.partition(" 1. ")[0] for row in entry_texts(digest, "skills")][
        1
    ] == "Step 4: Update PR"
