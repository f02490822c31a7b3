"""Tests of the options that select what a trim removes, and of the contents that stay protected."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from resume_hooks.derive.trim.options import (
    MAX_PROTECTED_RESULTS,
    EnteredOptions,
    make_options,
    parse_options,
)
from resume_hooks.derive.trim.plan import TrimPlan, list_remarks
from resume_hooks.errors import UsageError
from tests.builders import ConfigHome
from tests.derive.trim.odd_transcripts import IMAGE
from tests.derive.trim.sessions import LONG_OUTPUT, Chain, plan_trim_of_file, write_project_session


def plan_chain(home: ConfigHome, chain: Chain, **options: Any) -> TrimPlan:
    """Plan a trim of a conversation with these options."""
    return plan_trim_of_file(home, write_project_session(home, chain), **options)


def list_trimmed_call_ids(trim_plan: TrimPlan) -> list[str]:
    """Return the ids of the calls whose contents are trimmed, oldest first."""
    return list(dict.fromkeys(choice.piece.call_id for choice in trim_plan.choices))


def make_turns_with_outputs(turn_count: int) -> Chain:
    """Return turns with one long output each. The calls are ``t0``, ``t1`` and so on."""
    chain = Chain()
    for number in range(turn_count):
        chain.ask(f"question {number}").call_with_result(
            f"t{number}", "Read", f"{number} {LONG_OUTPUT}", file_path=f"/{number}"
        ).answer()
    return chain


@pytest.mark.parametrize(
    ("keep_recent", "expected_trimmed_count"),
    [(0, 4), (1, 3), (2, 2), (None, 2), (3, 1), (4, 0), (99, 0)],
)
def test_the_last_turns_are_protected(
    config_home: ConfigHome, keep_recent: int | None, expected_trimmed_count: int
) -> None:
    """``--keep-recent N`` protects the last N turns. Without the option, two turns are protected."""
    assert list_trimmed_call_ids(
        plan_chain(config_home, make_turns_with_outputs(4), keep_recent=keep_recent)
    ) == [f"t{number}" for number in range(expected_trimmed_count)]


def test_only_the_last_results_of_a_long_turn_are_protected(config_home: ConfigHome) -> None:
    """Without ``--keep-recent``, only the last results of a very long turn are protected.

    ``--keep-recent 1`` protects the whole turn.
    """
    chain = Chain().ask()
    for number in range(MAX_PROTECTED_RESULTS + 5):
        chain.call_with_result(f"t{number}", "Bash", f"{number} {LONG_OUTPUT}")
    assert list_trimmed_call_ids(plan_chain(config_home, chain, keep_recent=None)) == [
        f"t{number}" for number in range(5)
    ]
    assert list_trimmed_call_ids(plan_chain(config_home, chain, keep_recent=1)) == []


def test_client_remarks_are_not_counted_as_turns(config_home: ConfigHome) -> None:
    """Outputs of local commands and remarks of the client are not counted as turns."""
    chain = (
        make_turns_with_outputs(2)
        .ask("<local-command-stdout>x</local-command-stdout>")
        .ask("Caveat: y", isMeta=True)
    )
    assert list_trimmed_call_ids(plan_chain(config_home, chain, keep_recent=2)) == []


def make_chain_with_every_kind_of_content() -> Chain:
    """Return outputs of several tools, an image, a paste, an attachment and a long answer."""
    chain = Chain().ask("p" * 3_000).ask([IMAGE, {"type": "text", "text": "see"}])
    chain.attach(attachment={"type": "file"}, rendered=[{"content": LONG_OUTPUT}])
    for number, tool in enumerate(("Read", "Bash", "mcp__a__x", "mcp__b__y")):
        chain.call_with_result(f"t{number}", tool, f"{number} {LONG_OUTPUT}")
    return chain.call_with_result("t4", "Bash", "ok", command="c" * 900).answer("said " * 300)


@pytest.mark.parametrize(
    ("tools", "trimmed_ids"),
    [
        (("bash",), ["t1", "t4"]),
        (("read", "bash"), ["t0", "t1", "t4"]),
        (("mcp__*",), ["t2", "t3"]),
        (("mcp__b__*",), ["t3"]),
        (("nothing",), []),
    ],
)
def test_a_tool_filter_trims_only_the_named_tools(
    config_home: ConfigHome, tools: tuple[str, ...], trimmed_ids: list[str]
) -> None:
    """A trim with a tool filter trims only contents of the named tools.

    Images, pastes and answers are not trimmed.
    """
    assert (
        list_trimmed_call_ids(
            plan_chain(
                config_home, make_chain_with_every_kind_of_content(), tools=tools, assistant=9
            )
        )
        == trimmed_ids
    )


def test_a_named_rule_applies_with_a_tool_filter(config_home: ConfigHome) -> None:
    """With ``--tools bash``, images are also trimmed if ``--only`` names their rule, ``media``."""
    decided = plan_chain(
        config_home,
        make_chain_with_every_kind_of_content(),
        tools=("bash",),
        only=("results", "media"),
    )
    assert Counter(choice.rule for choice in decided.choices) == {"results": 1, "media": 1}


def test_a_tool_can_have_its_own_threshold(config_home: ConfigHome) -> None:
    """The threshold of a tool replaces the general threshold, whether it is higher or lower."""
    chain = (
        Chain()
        .ask()
        .call_with_result("t0", "Bash")
        .call_with_result("t1", "Read", "x" * 300)
        .call_with_result("t2", "Grep", "x" * 300)
    )
    assert list_trimmed_call_ids(
        plan_chain(config_home, chain, thresholds={"bash": 5_000, "read": 200})
    ) == ["t1"]
    assert list_trimmed_call_ids(
        plan_chain(config_home, chain, threshold=200, thresholds={"read": 400})
    ) == ["t0", "t2"]


@pytest.mark.parametrize(
    ("answer_count", "trimmed_indexes"),
    [(0, []), (1, [0]), (2, [0, 1]), (9, [0, 1, 2]), (-1, [0, 1]), (-3, []), (-9, [])],
)
def test_long_answers_are_trimmed_by_count(
    config_home: ConfigHome, answer_count: int, trimmed_indexes: list[int]
) -> None:
    """``--assistant N`` trims the first N long answers, and ``--assistant -N`` all except the last N.

    Short answers are not counted.
    """
    chain = Chain()
    for number in range(3):
        chain.ask().answer("short").ask().answer(f"{number} said " * 200)
    decided = plan_chain(config_home, chain, assistant=answer_count)
    assert [choice.piece.line_number for choice in decided.choices] == [
        4 * number + 3 for number in trimmed_indexes
    ]


def test_only_and_skip_select_rules(config_home: ConfigHome) -> None:
    """``only`` and ``skip`` select the rules that are applied."""

    def find_applied_rules(**options: Any) -> set[str]:
        return {
            choice.rule
            for choice in plan_chain(
                config_home, make_chain_with_every_kind_of_content(), **options
            ).choices
        }

    assert find_applied_rules() == {"attachments", "media", "results", "inputs", "pasted"}
    assert find_applied_rules(only=("media", "pasted")) == {"media", "pasted"}
    assert find_applied_rules(skip=("media", "pasted")) == {"attachments", "results", "inputs"}
    assert find_applied_rules(only=("media",), skip=("media",)) == set()


def test_trimmed_content_is_counted_for_its_first_rule(config_home: ConfigHome) -> None:
    """If two rules apply to the same content, the content is counted only for the first rule."""
    chain = (
        Chain()
        .ask()
        .call_with_result("t1", "Read", file_path="/a")
        .call_with_result("t2", "Read", file_path="/a")
    )
    assert [choice.rule for choice in plan_chain(config_home, chain).choices] == [
        "superseded",
        "results",
    ]


def make_turns_with_token_counts(turn_count: int) -> Chain:
    """Return turns with growing token counts and with outputs of about a thousand tokens each.

    The first and the last turn read the same file.
    """
    chain = Chain()
    for number in range(turn_count):
        chain.ask(
            f"question {number}",
        ).answer("ok", tokens=10_000 + 1_100 * number)
        chain.call_with_result(
            f"t{number}",
            "Read",
            f"{number} " + "word " * 800,
            file_path=f"/{number % (turn_count - 1)}",
        )
        chain.answer("read", tokens=11_000 + 1_100 * number)
    return chain


def test_a_trim_with_a_target_starts_with_the_least_useful_contents(
    config_home: ConfigHome,
) -> None:
    """A trim with a target removes an outdated read first, and then the oldest results.

    The trim stops when the target is reached.
    """
    chain = make_turns_with_token_counts(6)
    total = plan_chain(config_home, chain).context_before.tokens
    assert list_trimmed_call_ids(plan_chain(config_home, chain, target_tokens=total - 500)) == [
        "t0"
    ]
    two = plan_chain(config_home, chain, target_tokens=total - 1_500)
    assert [(choice.piece.call_id, choice.rule) for choice in two.choices] == [
        ("t0", "superseded"),
        ("t1", "results"),
    ]
    assert two.context_after.tokens <= total - 1_500
    assert plan_chain(config_home, chain, target_tokens=total).choices == ()


def test_a_trim_with_a_target_removes_an_outdated_read_before_an_older_result(
    config_home: ConfigHome,
) -> None:
    """A trim with a target removes an outdated read before an older result that is not outdated."""
    chain = Chain().ask().answer("a", tokens=9_000)
    for number, path in enumerate(("/x", "/y", "/y")):
        chain.call_with_result(
            f"t{number}", "Read", f"{number} " + "word " * 800, file_path=path
        ).answer("ok", tokens=10_000 + 1_000 * number)
    assert list_trimmed_call_ids(plan_chain(config_home, chain, target_tokens=11_500)) == ["t1"]


def test_a_trim_with_a_target_lowers_the_threshold_if_necessary(config_home: ConfigHome) -> None:
    """If necessary, a trim with a target lowers the default threshold, but not the user's threshold."""
    chain = Chain().ask().answer("a", tokens=9_000)
    for number in range(8):
        chain.call_with_result(f"t{number}", "Bash", f"{number} " + "word " * 80).answer(
            "ok", tokens=9_100 + 100 * number
        )
    low = plan_chain(config_home, chain, target_tokens=9_500)
    assert 0 < len(low.choices) < 8
    assert plan_chain(config_home, chain, target_tokens=9_500, threshold=500).choices == ()


def test_a_trim_with_an_unreachable_target_trims_everything(config_home: ConfigHome) -> None:
    """If the target can't be reached, all unprotected contents are trimmed, and a remark says so."""
    chain = make_turns_with_token_counts(4)
    assert len(plan_chain(config_home, chain, target_tokens=1).choices) == len(
        plan_chain(config_home, chain, threshold=72).choices
    )
    assert plan_chain(config_home, chain, target_tokens=1, keep_recent=4).choices == ()
    assert any(
        "target of 1 tokens cannot be reached" in said
        for said in list_remarks(plan_chain(config_home, chain, target_tokens=1))
    )
    assert not any(
        "target" in said
        for said in list_remarks(plan_chain(config_home, chain, target_tokens=100_000))
    )


def test_a_trim_with_a_target_removes_the_oldest_of_equal_failures_first(
    config_home: ConfigHome,
) -> None:
    """Of several failures of one command, a trim with a target removes the oldest first."""
    chain = Chain().ask().answer("a", tokens=9_000)
    for number in range(6):
        chain.call_with_result(
            f"t{number}", "Bash", f"{number} " + "word " * 300, is_error=True, command="make"
        )
        chain.answer("again", tokens=9_400 + 400 * number)
    chain.call_with_result("t9", "Bash", "ok", command="make")
    assert list_trimmed_call_ids(plan_chain(config_home, chain, target_tokens=10_500)) == [
        "t0",
        "t1",
        "t2",
    ]


def test_trim_options_are_parsed_in_any_order(config_home: ConfigHome) -> None:
    """Options are parsed in any order, with or without dashes, and with a space or an equals sign."""
    one = parse_options("--keep-recent 3 tools=Read,Bash --threshold 300 --threshold Bash=2000")
    two = parse_options("threshold=Bash=2000 threshold=300 --tools=Read,Bash keep-recent=3")
    assert one == two
    assert (
        one.keep_recent,
        one.tools,
        one.get_threshold_of_tool("Read"),
        one.get_threshold_of_tool("Bash"),
    ) == (
        3,
        ("read", "bash"),
        300,
        2_000,
    )


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        ("--tools", "needs a value"),
        ("--tools ''", "empty"),
        ("--only ,", "empty"),
        ("--only reslts", "no rule 'reslts'"),
        ("--skip all", "no rule 'all'"),
        ("--only assistant", "needs a number"),
        ("--keep-recent x", "needs a number"),
        ("--keep-recent -1", "less than 0"),
        ("--keep-recent 99999999999999999999", "not a number of"),
        ("--assistant -99999999999999999999", "not a number of"),
        ("--threshold Read=x", "needs a number of characters"),
        ("please", "not an option"),
        ("'open", "can't be read"),
    ],
)
def test_invalid_trim_options_are_refused(
    config_home: ConfigHome, text: str, expected_message: str
) -> None:
    """An invalid option is refused with an explanation. If a rule is unknown, all rules are listed."""
    with pytest.raises(UsageError, match=expected_message) as caught:
        parse_options(text)
    assert ("superseded" in caught.value.remedy) is ("no rule" in expected_message)


def test_an_empty_list_of_tools_is_refused(config_home: ConfigHome) -> None:
    """An empty list of tools is refused, because it may come from an unset shell variable."""
    assert make_options().tools == ()
    with pytest.raises(UsageError, match="--tools is empty"):
        make_options(EnteredOptions(tools=""))
