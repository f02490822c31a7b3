"""Tests of the contents that a model may choose.

These contents are large and not recent. They were not written by the user, and none of them is the
last text of a turn.
"""

from __future__ import annotations

import pytest

from resume_hooks.parts.smart_trim.offered_contents import (
    DEFAULT_RULE_NAMES,
    MAX_CANDIDATES,
    MIN_CONTENT_CHARACTERS,
    RULE_NAMES_FOR_USER_INSTRUCTIONS,
)
from tests.builders import ConfigHome, attachment, call
from tests.derive.trim.sessions import LONG_OUTPUT, Chain, write_project_session
from tests.parts.smart_trim.models import offer_of_file

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "A" * 9_000},
}


def kinds_and_targets(home: ConfigHome, chain: Chain, **options: object) -> list[tuple[str, str]]:
    """Return the kind and the target of each offered piece of content."""
    found = offer_of_file(write_project_session(home, chain), home, **options)  # type: ignore[arg-type]
    return [(one.piece.kind, one.target) for one in found.candidates]


def test_large_contents_are_offered_in_order(config_home: ConfigHome) -> None:
    """Large outputs, inputs, images, attachments and texts are offered in order, numbered from 1."""
    chain = Chain().ask("go").call_with_result("t1", "Bash", LONG_OUTPUT, command="ls")
    chain.call("t2", "Write", file_path="/a", content=LONG_OUTPUT).result("t2", [IMAGE])
    chain.rows.append(attachment(LONG_OUTPUT, uuid="c5", parent="c4", ts=5))
    chain.answer("I see. " * 100).call_with_result(
        "t3", "Bash", LONG_OUTPUT + "x", command="pwd"
    ).answer("All done. " * 100)
    found = offer_of_file(write_project_session(config_home, chain), config_home)
    assert [one.piece.kind for one in found.candidates] == [
        "result",
        "input",
        "media",
        "attachment",
        "text",
        "result",
    ]
    assert [one.number for one in found.candidates] == [1, 2, 3, 4, 5, 6]
    assert {one.turn_number for one in found.candidates} == {1}
    assert found.omitted_content_count == 0


@pytest.mark.parametrize(
    "chain",
    [
        Chain().ask(LONG_OUTPUT).answer("ok").add_short_turns(1),
        Chain().ask("go").answer(LONG_OUTPUT).add_short_turns(1),
        Chain().ask("go").call_with_result("t1", "Bash", "x" * (MIN_CONTENT_CHARACTERS - 1), command="ls"),
        Chain().ask("go").call_with_result("t1", "AskUserQuestion", LONG_OUTPUT),
        Chain().ask("go").call_with_result("t1", "ExitPlanMode", LONG_OUTPUT),
        Chain().ask("go").call_with_result("t1", "Bash",
        "The user doesn't want to proceed. They said: " + LONG_OUTPUT, is_error=True),
        Chain().ask("go").call("t1", "Write", content=LONG_OUTPUT, file_path="/a"),
        Chain().ask("go").answer([{"type": "thinking", "thinking": LONG_OUTPUT, "signature": "s"}]).answer("ok"),
        Chain().ask("go").attach(attachment={"type": "skill_listing", "content": LONG_OUTPUT}),
        Chain().ask("go").attach(attachment={"type": "queued_command", "prompt": LONG_OUTPUT}),
        Chain(),
    ],
    ids=[
        "prompt", "last words", "short", "the user's choice", "a plan", "the user's refusal", "unanswered call",
        "thinking", "listing", "queued prompt", "nothing",
    ],
)  # fmt: skip
def test_contents_are_not_offered_if_excluded(config_home: ConfigHome, chain: Chain) -> None:
    """Prompts, answers, short contents, plans, thinking and other excluded contents are not offered."""
    assert (
        kinds_and_targets(
            config_home, Chain().ask("hello").answer("hi") if not chain.rows else chain
        )
        == []
    )


def test_the_last_long_text_of_each_turn_stays(config_home: ConfigHome) -> None:
    """The last long text of each turn is not offered, even if a short remark follows it."""
    chain = Chain()
    for number in range(2):
        chain.ask(f"go {number}").answer(f"first {number} " * 100).answer(
            f"report {number} " * 100
        ).answer("Done.")
    found = offer_of_file(write_project_session(config_home, chain), config_home)
    assert [one.excerpt[:7] for one in found.candidates] == ["first 0", "first 1"]


def test_contents_of_recent_turns_are_not_offered(config_home: ConfigHome) -> None:
    """Contents of recent turns are not offered.

    ``keep_recent`` is the number of recent turns; if it is None, the setting applies.
    """
    chain = (
        Chain()
        .ask("one")
        .call_with_result("t1", "Bash", LONG_OUTPUT, command="a")
        .ask("two")
        .call_with_result("t2", "Bash", LONG_OUTPUT + "2", command="b")
    )
    assert [target for _, target in kinds_and_targets(config_home, chain, keep_recent=0)] == [
        "a",
        "b",
    ]
    assert [target for _, target in kinds_and_targets(config_home, chain, keep_recent=1)] == ["a"]
    assert kinds_and_targets(config_home, chain, keep_recent=2) == []
    assert kinds_and_targets(config_home, chain, keep_recent=None) == []


def test_certain_rules_need_no_model(config_home: ConfigHome) -> None:
    """Contents that a rule is certain to trim, for example repeated reads, are not offered to the model."""
    chain = (
        Chain()
        .ask("go")
        .call_with_result("t1", "Read", LONG_OUTPUT, file_path="/a")
        .call_with_result("t2", "Read", LONG_OUTPUT + "2", file_path="/a")
    )
    found = offer_of_file(write_project_session(config_home, chain), config_home)
    assert [choice.rule for choice in found.rule_choices] == ["superseded"]
    assert [one.piece.call_id for one in found.candidates] == ["t2"]
    assert set(found.options.only) == set(DEFAULT_RULE_NAMES)


def test_wishes_let_the_model_judge_contents_that_match_a_rule(
    config_home: ConfigHome,
) -> None:
    """If the user has wishes, the model also judges contents that match a rule.

    A matching rule then chooses nothing itself. The model gets the rule's reason as a note.
    """
    chain = (
        Chain()
        .ask("go")
        .call_with_result("t1", "Read", LONG_OUTPUT, file_path="/a")
        .call_with_result("t2", "Read", LONG_OUTPUT + "2", file_path="/a")
    )
    found = offer_of_file(
        write_project_session(config_home, chain),
        config_home,
        rules=RULE_NAMES_FOR_USER_INSTRUCTIONS,
    )
    assert found.rule_choices == ()
    assert [one.notes for one in found.candidates] == [("the file was read again later",), ()]


def test_offered_contents_have_notes_on_their_outcome(config_home: ConfigHome) -> None:
    """Offered contents have notes on failures and on later calls for the same file or command."""
    chain = (
        Chain().ask("go").call_with_result("t1", "Bash", LONG_OUTPUT, command="make", is_error=True)
    )
    chain.ask("again").call_with_result(
        "t2", "Bash", LONG_OUTPUT + "2", command="make", is_error=True
    )
    found = offer_of_file(write_project_session(config_home, chain), config_home)
    assert found.candidates[0].notes == (
        "failed",
        "1 later call with the same target, the last in turn 2",
    )
    assert found.candidates[1].notes == ("failed",)


def test_only_the_largest_contents_are_offered(config_home: ConfigHome) -> None:
    """Of very many contents, only the largest are offered, and the others are counted."""
    chain = Chain().ask("go")
    blocks = []
    for number in range(MAX_CANDIDATES + 5):
        chain.call(f"t{number}", "Bash", command=f"c{number}")
        blocks.append(f"t{number}")
    for number, name in enumerate(blocks):
        chain.result(name, "word " * (MIN_CONTENT_CHARACTERS + number))
    found = offer_of_file(write_project_session(config_home, chain), config_home)
    assert (len(found.candidates), found.omitted_content_count) == (MAX_CANDIDATES, 5)
    assert found.candidates[0].target == "c5"
    assert [one.number for one in found.candidates] == list(range(1, MAX_CANDIDATES + 1))


def test_excerpts_are_short_and_plain(config_home: ConfigHome) -> None:
    """An excerpt has the beginning and the end of an output, without control characters."""
    text = "\x1b[31mstart\x1b[0m " + "x" * 3_000_000 + " the end"
    chain = Chain().ask("go").call_with_result("t1", "Bash", text, command="cat")
    (one,) = offer_of_file(write_project_session(config_home, chain), config_home).candidates
    assert one.excerpt.startswith("start xxx")
    assert one.excerpt.endswith("xxx the end")
    assert len(one.excerpt) < 700
    assert "2,999,4" in one.excerpt


def test_malformed_calls_are_accepted(config_home: ConfigHome) -> None:
    """Calls with a target of the wrong type, without a name or without input are accepted."""
    chain = Chain().ask("go").answer([call("t1", "", file_path=7)]).result("t1", LONG_OUTPUT)
    (one,) = offer_of_file(write_project_session(config_home, chain), config_home).candidates
    assert (one.tool, one.target, one.notes) == ("", "", ())
