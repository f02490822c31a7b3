"""Tests of the guard: which prompts pass without Python, and which prompts are sent to Python."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.hook_scripts.plugin_copy import PluginCopy

SHELL_COMMANDS = [
    ["sh"],
    ["dash"],
    ["bash"],
    ["bash", "--posix"],
    ["busybox", "sh"],
    ["ksh"],
    ["zsh", "--emulate", "sh"],
]
JSON_ENCODERS_BY_NAME: dict[str, Callable[[object], str]] = {
    "compact": partial(json.dumps, separators=(",", ":"), ensure_ascii=False),
    "ascii": partial(json.dumps, separators=(",", ":")),
    "default": json.dumps,
    "indented": partial(json.dumps, indent=2, ensure_ascii=False),
}
IMITATED_TRIGGER = '"prompt":">resume"'
PASSING_EVENTS = {
    "plain": '{"prompt":"fix it"}',
    "empty": '{"prompt":""}',
    "leading space escapes": '{"prompt":" >resume"}',
    "later": '{"prompt":"a > b"}',
    "HTML": json.dumps({"prompt": '<a href="x">"/resume-hooks:handoff"</a>'}),
    "imitation in the prompt": json.dumps({"prompt": IMITATED_TRIGGER}),
    "imitation in another value": json.dumps({"session_title": IMITATED_TRIGGER, "prompt": "x"}),
    "imitation after it": json.dumps({"prompt": "x", "session_title": IMITATED_TRIGGER}),
    "other keys start with it": '{"cwd":">resume","prompt":"x","session_title":">resume"}',
    "value is the key's name": '{"cwd":"prompt","prompt":"x"}',
    "paste": json.dumps({"prompt": '\n\n<pasted_content id="1">\n>resume'}),
    "newline, then a trigger": '{"prompt":"\\n>resume"}',
    "other slash commands": '{"prompt":"/review"}',
    "alike": '{"prompt":"/resume-hooksx:handoff"}',
    "escaped slash, other": '{"prompt":"\\/review"}',
    "escaped letter": '{"prompt":"\\u4f60\\u597d"}',
    "escaped quote first": '{"prompt":"\\">resume"}',
    "no prompt": '{"session_id":">resume"}',
    "not a text": '{"prompt":null}',
    "not JSON": ">resume",
    "nothing": "",
}
TRIGGER_EVENTS = {
    "trigger": '{"prompt":">resume"}',
    "slash": '{"prompt":"/resume-hooks:handoff fix"}',
    "slash in capitals": '{"prompt":"/Resume-HOOKS:handoff"}',
    "bare >": '{"prompt":">"}',
    "escaped >": '{"prompt":"\\u003eresume"}',
    "escaped > in capitals": '{"prompt":"\\u003Eresume"}',
    "escaped slash": '{"prompt":"\\/resume-hooks:help"}',
    "slash by number": '{"prompt":"\\u002fresume-hooks:help"}',
    "spaced": '{"prompt": ">resume"}',
    "spaced, slash by number": '{"prompt": "\\u002Fresume-hooks:help"}',
    "last key": '{"cwd":"/x","prompt":">resume"}',
    "first key": '{"prompt":">resume","cwd":"/x"}',
    "space before the colon": '{"prompt" : ">resume"}',
    "much white space": '{"prompt"\n\t \r\n:\n\n\t      ">resume"}',
    "imitation before it": json.dumps({"session_title": '"prompt":"x"', "prompt": ">resume"}),
}


def installed_shells() -> list[list[str]]:
    """Return the tested shells that are installed. Every client runs hooks with /bin/sh."""
    return [shell for shell in SHELL_COMMANDS if shutil.which(shell[0])]


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_a_prompt_without_trigger_passes_without_python(
    shared_plugin: PluginCopy, shell: list[str]
) -> None:
    """If a prompt has no trigger, the guard starts no Python, prints nothing and exits with 0."""
    for why, body in PASSING_EVENTS.items():
        shared_plugin.delete_engine_calls()
        done = shared_plugin.run_hook("UserPromptSubmit", body.encode(), *shell)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), why
        assert shared_plugin.engine_calls == b"", why


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_a_possible_trigger_reaches_python_unchanged(
    shared_plugin: PluginCopy, shell: list[str]
) -> None:
    """If a prompt may be a trigger, Python gets exactly the event's bytes, and its reply is printed."""
    for why, body in TRIGGER_EVENTS.items():
        shared_plugin.delete_engine_calls()
        done = shared_plugin.run_hook("UserPromptSubmit", body.encode(), *shell)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"reply of prompt\n", b""), why
        assert shared_plugin.engine_calls.split(b"\n", 1)[1] == body.encode() + b"\n", why


def is_trigger(prompt: str) -> bool:
    """Check whether a prompt begins like a trigger, by the same rule as the guard."""
    return prompt.startswith(">") or prompt.lower().startswith("/resume-hooks:")


PROMPT_STRATEGY = st.builds(
    str.__add__,
    st.sampled_from(
        [
            "",
            "",
            ">",
            "/resume-hooks:",
            "/RESUME-hooks:",
            "/r",
            "\\",
            '"',
            '",',
            " ",
            "\n",
            IMITATED_TRIGGER,
        ]
    ),
    st.text(max_size=40),
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    PROMPT_STRATEGY,
    PROMPT_STRATEGY,
    st.sampled_from(sorted(JSON_ENCODERS_BY_NAME)),
    st.permutations(["cwd", "prompt", "session_title"]),
)
@example(">\ud800 half a character", "", "ascii", ["cwd", "prompt", "session_title"])
@example(">\x81\x88\x7f", "", "compact", ["prompt", "cwd", "session_title"])
def test_only_triggers_reach_python(
    shared_plugin: PluginCopy, prompt: str, other: str, encoder: str, order: list[str]
) -> None:
    """Of random prompts, only those that begin like a trigger reach Python.

    The encoding of the event and the order of its keys make no difference.
    """
    texts = {"cwd": other, "prompt": prompt, "session_title": other + prompt}
    body = JSON_ENCODERS_BY_NAME[encoder]({key: texts[key] for key in order}).encode(
        "utf-8", "surrogatepass"
    )
    shared_plugin.delete_engine_calls()
    done = shared_plugin.run_hook("UserPromptSubmit", body)
    assert (done.returncode, done.stderr) == (0, b"")
    assert bool(shared_plugin.engine_calls) == is_trigger(prompt)
    if is_trigger(prompt):
        assert shared_plugin.engine_calls.split(b"\n", 1)[1] == body + b"\n"


HOSTILE_EVENTS = {
    "invalid UTF-8": b'\xff\xfe{"prompt":"\x80\x81x"}',
    "NULs": b'{"prompt":"\x00\x00x"}\x00',
    "10 MB": b'{"prompt":"' + b'a \\"prompt\\":\\">x\\" ' * 500_000 + b'"}',
    "10 MB without a key": b"x" * 10_000_000,
    "a huge key in front": b'{"x":"' + b"y" * 2_000_000 + b'","prompt":"x"}',
    "shell text": b'{"prompt":"$(touch /tmp/x) `id` ; exit 2 *"}',
}


@pytest.mark.parametrize("name", sorted(HOSTILE_EVENTS))
def test_an_invalid_event_causes_no_output(plugin: PluginCopy, name: str) -> None:
    """If an event is invalid or huge, the guard prints nothing and exits with 0."""
    done = plugin.run_hook("UserPromptSubmit", HOSTILE_EVENTS[name])
    assert (done.returncode, done.stdout, done.stderr, plugin.engine_calls) == (0, b"", b"", b"")


def test_hooks_do_nothing_in_the_plugins_headless_run(plugin: PluginCopy) -> None:
    """In the plugin's own headless run, hooks do nothing, even for a trigger.

    RESUME_HOOKS_CHILD marks this run.
    """
    bodies = {"UserPromptSubmit": b'{"prompt":">resume"}', "SessionStart": b'{"source":"clear"}',
              "SessionEnd": b'{"reason":"clear"}'}  # fmt: skip
    for event, body in bodies.items():
        done = plugin.run_hook(event, body, RESUME_HOOKS_CHILD="1")
        assert (done.returncode, done.stdout, done.stderr, plugin.engine_calls) == (
            0,
            b"",
            b"",
            b"",
        )


def test_the_engine_gets_the_users_locale(plugin: PluginCopy) -> None:
    """The engine gets the user's LC_ALL, although the guard itself runs in the C locale."""
    (plugin.root / "src/resume_hooks/hooks/prompt.py").write_text(
        "import os\ndef main(): print(os.environ.get('LC_ALL'))\n"
    )
    assert (
        plugin.run_hook("UserPromptSubmit", b'{"prompt":">x"}', LC_ALL="C.UTF-8").stdout
        == b"C.UTF-8\n"
    )
    assert plugin.run_hook("UserPromptSubmit", b'{"prompt":">x"}').stdout == b"None\n"
