"""Tests of which prompts are triggers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks import seam
from resume_hooks.hooks.triggers import TYPED_SIGN, TYPED_VERBS, Trigger, recognise_trigger
from resume_hooks.shared_values import COMMAND_PREFIX

PASTED_SESSION_ID = "5e12a303-7a0b-4c1d-9e2f-0123456789ab"

RECOGNIZED_PROMPTS = [
    (">resume", "resume", ""),
    (">continue", "resume", ""),
    (">Resume  \n", "resume", ""),
    (">resume tests", "resume", "tests"),
    ("/resume-hooks:resume fix the tests", "resume", "fix the tests"),
    ('>handoff fix\n\n<pasted_content id="1">\na log\n</pasted_content>', "handoff", "fix\na log"),
    ("/resume-hooks:handoff quote\n> a\n> b", "handoff", "quote\n> a\n> b"),
    (">handoff fix this:\n> a\nand that", "handoff", "fix this:\n> a\nand that"),
    (">handoff fix the tests", "handoff", "fix the tests"),
    (">HandOff\n\n  two\nlines \n", "handoff", "two\nlines"),
    (">handoff\tx", "handoff", "x"),
    (">handoff\u00a0x", "handoff", "x"),
    (">handoff >resume", "handoff", ">resume"),
    (">session-id", "session", ""),
    (">lineage \t", "lineage", ""),
    (">help\n", "help", ""),
    (">Trim YES\n", "trim", "YES"),
    (">trim --tools Read,Bash threshold=300", "trim", "--tools Read,Bash threshold=300"),
    ("/resume-hooks:trim the hedge", "trim", "the hedge"),
    (">trim ok", "trim", "ok"),
    (">trim>trim yes", "trim", "yes"),
    (">trim --tools Read>TRIM yes", "trim", "yes"),
    (">trim yes >trim --tools Bash", "trim", "--tools Bash"),
    (">trim/resume-hooks:trim yes", "trim", "yes"),
    (">trim>trim>trim", "trim", ""),
    (">trim yes>trimmed", "trim", "yes>trimmed"),
    (">handoff then >trim yes", "handoff", "then >trim yes"),
    (">Search why did we drop it?", "search", "why did we drop it?"),
    ('>search "connection pool" -redis', "search", '"connection pool" -redis'),
    (">search --all /clear the cache", "search", "--all /clear the cache"),
    ("/resume-hooks:search redis", "search", "redis"),
    ("/resume-hooks:TRIM yes", "trim", "yes"),
    ("/resume-hooks:continue", "resume", ""),
    ("/Resume-Hooks:HANDOFF do it", "handoff", "do it"),
    (
        f">handoff /resume {PASTED_SESSION_ID} first, then test",
        "handoff",
        f"/resume {PASTED_SESSION_ID} first, then test",
    ),
    (">handoff explain /clear to me", "handoff", "explain /clear to me"),
    (">handoff /resume", "handoff", "/resume"),
    (f">resume {PASTED_SESSION_ID}", "resume", PASTED_SESSION_ID),
    (">handoff   a \"b\" 'c' \\d $(e)\n\n\tf  ", "handoff", "a \"b\" 'c' \\d $(e)\n\n\tf"),
    (">resume>handoff fix it", "handoff", "fix it"),
    (">resume>rollover/handoff fix it", "handoff", "fix it"),
    (">resume/handoff", "handoff", ""),
    (">handoff>handoff x", "handoff", "x"),
    (">help>lineage", "lineage", ""),
    (">session-id>recall", "recall", ""),
    ("/resume-hooks:trim>resume", "resume", ""),
    (">handoff write tests/resume-hooks:trim", "trim", ""),
    (">resume>handoff write tests/resume-hooks:handoff 4k now", "handoff", "4k now"),
    (">handoff explain /resume-hooks:trim", "handoff", "explain /resume-hooks:trim"),
    (">handoff read docs/resume-hooks:trims", "handoff", "read docs/resume-hooks:trims"),
]
"""Prompts that are triggers, each with its verb and its text.

If a prompt contains several triggers, the last one counts, because recent clients put a blocked
prompt back into the input box.
"""

ORDINARY_PROMPTS = [
    (">resume fix the tests", "a sentence"),
    (">continue with\nthis", "a sentence"),
    (">trim the hedge", "a sentence"),
    (">handoff is what we need\n> and now\n\n> not later", "a quote"),
    (">resume\n>more", "a quote"),
    ("", "nothing"),
    (">", "a quote sign alone"),
    (" >resume", "a leading space escapes"),
    ("\n>resume", "not at the very start"),
    ("\ufeff>resume", "not at the very start"),
    ("> resume", "a markdown quote"),
    ("> handoff is a verb", "a markdown quote"),
    (">resumed yesterday", "another word"),
    ("> quoted words/resume-hooks:trim", "a markdown quote"),
    (">resume-later", "another word"),
    (">resume.", "punctuation belongs to the word"),
    (">handoff: x", "punctuation belongs to the word"),
    (">>resume", "two signs"),
    (">session what is this", "fires alone only"),
    (">session-id of what", "fires alone only"),
    (">lineage please", "fires alone only"),
    (">help me with the parser", "fires alone only"),
    (">help me understand /clear", "fires alone only, so nothing was pasted over it"),
    (f">session {PASTED_SESSION_ID} and then /resume {PASTED_SESSION_ID}", "fires alone only"),
    (">trimmed", "another word"),
    (">trim>trimmed", "another word"),
    (">trimmed >trim yes", "another word"),
    (">checkpoints are useful", "another word"),
    (">mark>checkpoints", "another word"),
    (">back>rewinding", "another word"),
    (">searching for it", "another word"),
    (">search: it", "punctuation belongs to the word"),
    (">tr\u0131m yes", "a letter that only folds to i"),
    (">quote\n>resume", "a quote of two lines"),
    ("resume", "no sign"),
    ("/resume", "the client's own command"),
    (f"/resume {PASTED_SESSION_ID}", "the client's own command"),
    ("/clear", "the client's own command"),
    ("/handoff x", "the prefix is missing"),
    ("/resume-hooks", "no verb"),
    ("/resume-hooks:", "no verb"),
    ("/resume-hooks: handoff", "no verb"),
    ("/resume-hooks:doctor", "no trigger"),
    (" /resume-hooks:handoff", "a leading space escapes"),
    ('\n\n<pasted_content id="1">\n>resume', "a long paste"),
    ("\uff1eresume", "another sign, which only looks the same"),
    (">\u017fession", "a letter that only folds to s"),
    (">resume>handoffs", "another word behind one that came back"),
    (">resume/handoffs", "another word with a slash behind one that came back"),
    (">quote>handoff x", "no trigger before it"),
    (">>handoff x", "two signs"),
]  # fmt: skip

PROMPTS_WITH_PASTE = [
    (f">handoff fix the tests/resume {PASTED_SESSION_ID}", "handoff"),
    (f">handoff fix the tests /resume {PASTED_SESSION_ID}", "handoff"),
    (f">handoff fix the tests\n/resume {PASTED_SESSION_ID}\n", "handoff"),
    (f">handoff/resume {PASTED_SESSION_ID}", "handoff"),
    (f">handoff {PASTED_SESSION_ID}/resume {PASTED_SESSION_ID}", "handoff"),
    (f">HANDOFF FIX /RESUME {PASTED_SESSION_ID.upper()}", "handoff"),
    (">handoff fix /clear", "handoff"),
    (">handoff fix/clear", "handoff"),
    (">handoff/clear", "handoff"),
    (">handoff\n\n/clear \n", "handoff"),
    (f">trim yes /resume {PASTED_SESSION_ID}", "trim"),
    (f">trim yes/resume {PASTED_SESSION_ID}", "trim"),
    (f">trim/resume {PASTED_SESSION_ID}", "trim"),
    (f">trim --tools Read\ncd /x && claude --resume {PASTED_SESSION_ID}", "trim"),
    (f">trim>trim yes /resume {PASTED_SESSION_ID}", "trim"),
    (f"/resume-hooks:trim yes /resume {PASTED_SESSION_ID}", "trim"),
    (">trim /clear", "trim"),
    (">resume /clear", "resume"),
    (">resume/clear", "resume"),
    (f">continue/resume {PASTED_SESSION_ID}", "resume"),
    (f">session/resume {PASTED_SESSION_ID}", "session"),
    (f">session-id /resume {PASTED_SESSION_ID}", "session"),
    (">lineage/clear", "lineage"),
    (">help /clear", "help"),
    (f"/resume-hooks:handoff fix/resume {PASTED_SESSION_ID}", "handoff"),
    ("/resume-hooks:handoff fix /clear", "handoff"),
    (f">search redis/resume {PASTED_SESSION_ID}", "search"),
    (">search redis /clear", "search"),
    (f">resume{PASTED_SESSION_ID}", "resume"),
    (f">session{PASTED_SESSION_ID}", "resume"),
    (f">session-id{PASTED_SESSION_ID}\n", "resume"),
]


@pytest.mark.parametrize(("prompt", "verb", "text"), RECOGNIZED_PROMPTS)
def test_a_trigger_is_recognized(prompt: str, verb: str, text: str) -> None:
    """The hook finds the verb and the text of a trigger exactly as the user typed them."""
    assert_trigger(prompt, verb, text)


def assert_trigger(prompt: str, verb: str, text: str) -> None:
    """Check that ``prompt`` is a trigger with this verb and text."""
    assert recognise_trigger(prompt) == Trigger(
        verb,
        text,
        prompt.startswith("/"),
        is_pasted_after_text=False,
        sign=COMMAND_PREFIX if prompt.startswith("/") else TYPED_SIGN,
    )


@pytest.mark.parametrize(("prompt", "reason"), ORDINARY_PROMPTS)
def test_an_ordinary_prompt_is_not_a_trigger(prompt: str, reason: str) -> None:
    """An ordinary prompt, such as a sentence that mentions a trigger, is not recognized as a trigger."""
    assert recognise_trigger(prompt) is None, reason


@pytest.mark.parametrize(("prompt", "verb"), PROMPTS_WITH_PASTE)
def test_a_trigger_before_a_client_command_is_a_paste(prompt: str, verb: str) -> None:
    """If a trigger ends with a command of the client, such as ``/clear``, it is recognized as a paste."""
    assert_trigger_has_paste(prompt, verb)


def assert_trigger_has_paste(prompt: str, verb: str) -> None:
    """Check that ``prompt`` is a trigger with this verb and a pasted command."""
    found = recognise_trigger(prompt)
    assert found is not None
    assert (found.verb, found.is_pasted_after_text) == (verb, True)


TRIGGER_START_PATTERN = re.compile(r">|/resume-hooks:", re.IGNORECASE)


@given(
    st.one_of(
        st.text(st.characters(codec=None)),
        st.tuples(
            st.sampled_from([">", " >", "/resume-hooks:", "/Resume-Hooks:", "> ", ">>", "/", ""]),
            st.sampled_from(
                [
                    "resume",
                    "handoff",
                    "trim",
                    "search",
                    "session",
                    "help",
                    "lineage",
                    "",
                    "/clear",
                    f"/resume {PASTED_SESSION_ID}",
                ]
            ),
            st.text(st.characters(codec=None)),
        ).map("".join),
    )
)
def test_text_without_a_sign_and_a_verb_is_not_a_trigger(prompt: str) -> None:
    """Text is a trigger only if it begins with a sign and, directly after it, a verb.

    Other text is not a trigger and raises no error.
    """
    found = recognise_trigger(prompt)
    if found is None:
        return
    assert TRIGGER_START_PATTERN.match(prompt)
    assert not prompt.startswith("> ")
    assert found.verb in TYPED_VERBS
    assert found.text == found.text.strip()
    assert found.text in prompt
    assert not (found.text and found.verb in {"session", "lineage", "help"})


@pytest.mark.parametrize(
    "prompt",
    [
        ">" + "a" * 1_000_000,
        ">handoff " + " " * 1_000_000 + "x",
        ">help" + "-" * 1_000_000,
        ">trim" * 200_000 + "x",
        ">mark" * 100_000 + " yes",
        ">mark " * 100_000 + "x",
        ">back" * 150_000 + "x",
    ],
)
def test_a_long_prompt_is_parsed_in_one_pass(prompt: str) -> None:
    """A prompt of a megabyte is parsed in one pass, not with a pattern that backtracks."""
    found = recognise_trigger(prompt)
    assert found is None or found.verb in {"handoff", "trim", "mark"}


def test_triggers_of_a_missing_part_are_not_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a part of the plugin is missing, its triggers are not recognized."""
    assert {each.name for each in seam.list_triggers()} < TYPED_VERBS
    monkeypatch.setattr(seam, "PARTS_FOLDER", "/nowhere")
    assert seam.list_triggers() == []
