"""Tests of the hook that lets the model read earlier sessions: what it allows, and its cost."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.hook_scripts.plugin_copy import PluginCopy, make_plugin
from tests.hook_scripts.test_guard import installed_shells
from tests.hook_scripts.test_guard_cost import trace_hook
from tests.needs import REPO

ALLOW_REPLY = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": "resume-hooks: reads earlier sessions, changes nothing",
    }
}
# In these commands, the tests replace ``ENGINE`` with the launcher's path.
READING_COMMANDS = (
    '"ENGINE" search retry queue',
    "\"ENGINE\" search 'retry queue dropped' --or 'why no backoff?' --or 'give up after three attempts'",
    """"ENGINE" search "why didn't we retry" --or 'it gave up' --or '"exact phrase" -other' --lineage 1a2b3c4d""",
    "\"ENGINE\" search 'retry queue' --or='no backoff' --or \"last week's plan\" --all --since 2w",
    '"ENGINE" lineage',
    '"ENGINE" outline 1a2b3c4d --turns -10',
    '"ENGINE" read 1a2b3c4d-1111-4111-8111-111111111111:56 --before 2 --after 4 --max-chars=300',
    '"ENGINE" read "1a2b3c4d/agent-a63d21c:12"',
    '"ENGINE" sessions --json',
    '"ENGINE" info',
    '"ENGINE" search   "retry queue"  -dropped ',
    "\"ENGINE\" search 'a; b | c && d > e < f $x `y` $(z) * ? [a] {b} ~ # !'",
    '"ENGINE" search "it\'s (x) | y; z > w & v * ! #"',
    '"ENGINE" search "\\"exact phrase\\" other"',
    '"ENGINE" search \'"exact phrase" other\'',
    '"ENGINE" search wörter "日本語" \'\u0131\'',
    "'ENGINE' search retry",
    'ENGINE search "retry queue"',
)
COMMANDS_WITHOUT_REPLY = {
    "another command": "ls -la",
    "names it only": 'echo "ENGINE" search x',
    "a verb that writes": '"ENGINE" trim --in-place x',
    "a verb that starts alike": '"ENGINE" searchx y',
    "no verb": '"ENGINE"',
    "an option first": '"ENGINE" --slash handoff',
    "another program": '"ENGINE.sh" search x',
    "another way to it": '"ENGINE/../engine" search x',
    "an assignment": 'RESUME_HOOKS_PYTHON=/tmp/x "ENGINE" search y',
    "without the variable": 'env -u CLAUDECODE "ENGINE" search y',
    "another first": 'cd /tmp && "ENGINE" search x',
    "another after it": '"ENGINE" search x; id',
    "and": '"ENGINE" search x && id',
    "an apostrophe that ends the quotes": "\"ENGINE\" search 'why didn't we' --or 'x'",
    "a command in a wording": '"ENGINE" search \'x\' --or "$(id)"',
    "another after a wording": "\"ENGINE\" search 'x' --or 'y'; id",
    "a pipe": '"ENGINE" search x | sh',
    "in the background": '"ENGINE" search x &',
    "into a file": '"ENGINE" search x > y',
    "out of a file": '"ENGINE" search x < y',
    "descriptors": '"ENGINE" search x 2>&1',
    "a second line": '"ENGINE" search x\nid',
    "a second line in quotes": '"ENGINE" search "x\nid"',
    "a tab": '"ENGINE" search\tx',
    "a command inside": '"ENGINE" search $(id)',
    "a command inside quotes": '"ENGINE" search "$(id)"',
    "the old form": '"ENGINE" search `id`',
    "the old form in quotes": '"ENGINE" search "`id`"',
    "a variable": '"ENGINE" search "$ANTHROPIC_API_KEY"',
    "a glob": '"ENGINE" search *',
    "a home": '"ENGINE" search ~root',
    "braces": '"ENGINE" search {a,b}',
    "a comment": '"ENGINE" search x # y',
    "a backslash": '"ENGINE" search \\x',
    "a backslash in quotes": '"ENGINE" search "x\\\\" ; id "',
    "an open quote": '"ENGINE" search "x',
    "another open quote": '"ENGINE" search \'x',
}


@pytest.fixture(scope="module")
def plugin_in_spaced_folder(tmp_path_factory: pytest.TempPathFactory) -> PluginCopy:
    """Return a plugin in a folder whose name contains a space."""
    return copy_plugin_to(tmp_path_factory.mktemp("plugin_in_spaced_folder"), "plug in")


def copy_plugin_to(folder: Path, name: str) -> PluginCopy:
    """Copy the plugin to ``folder/name`` and return the copy."""
    made = make_plugin(folder)
    root = made.root.rename(folder / name)
    return replace(made, root=root, env=made.env | {"CLAUDE_PLUGIN_ROOT": str(root)})


def bash_event(command: str, **fields: Any) -> bytes:
    """Return the event of a Bash call in the client's form."""
    body = {"cwd": "/x", "hook_event_name": "PreToolUse", "tool_name": "Bash", **fields}
    body.setdefault("tool_input", {"command": command, "description": "d"})
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def is_call_allowed(plugin: PluginCopy, body: bytes, *shell: str, **env: str) -> bool:
    """Check whether the hook allows a call.

    Raises AssertionError if the hook fails, or if its output is neither empty nor a permission.
    """
    answer = hook_reply(plugin, body, *shell, **env)
    assert answer in ({}, ALLOW_REPLY)
    return bool(answer)


def hook_reply(plugin: PluginCopy, body: bytes, *shell: str, **env: str) -> dict[str, Any]:
    """Return the hook's reply to a call, or ``{}`` if there is none.

    Raises AssertionError if the hook fails.
    """
    done = plugin.run_hook("PreToolUse", body, *shell, **env)
    assert (done.returncode, done.stderr) == (0, b"")
    said: dict[str, Any] = json.loads(done.stdout or b"{}")
    return said


def insert_launcher_path(plugin: PluginCopy, command: str) -> str:
    """Return the command with the launcher's path in place of ``ENGINE``."""
    return command.replace("ENGINE", str(plugin.root / "hooks" / "engine"))


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_reading_commands_are_allowed(tmp_path: Path, shell: list[str]) -> None:
    """Calls of verbs that only read are allowed, in each shell and with every common kind of quotes."""
    plain = copy_plugin_to(tmp_path / "plain", "plugin")
    for command in READING_COMMANDS:
        assert is_call_allowed(plain, bash_event(insert_launcher_path(plain, command)), *shell), (
            command
        )


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_the_hook_replies_only_to_one_call_of_a_reading_verb(
    plugin_in_spaced_folder: PluginCopy, shell: list[str]
) -> None:
    """The hook does not reply unless the command is a single call of a verb that only reads.

    It does not reply to shell expansions either.
    """
    for why, command in COMMANDS_WITHOUT_REPLY.items():
        assert not is_call_allowed(
            plugin_in_spaced_folder,
            bash_event(insert_launcher_path(plugin_in_spaced_folder, command)),
            *shell,
        ), why


def test_only_a_plain_bash_call_is_allowed(plugin_in_spaced_folder: PluginCopy) -> None:
    """The hook allows only a plain Bash call of the launcher.

    It does not reply to calls of other tools, calls outside the sandbox, very long calls, or events
    with a second command. It does not reply in the plugin's own headless run either.
    """
    command = insert_launcher_path(plugin_in_spaced_folder, READING_COMMANDS[0])
    assert is_call_allowed(plugin_in_spaced_folder, bash_event(command))
    assert is_call_allowed(
        plugin_in_spaced_folder,
        bash_event("", tool_input={"description": "command", "command": command, "timeout": 9}),
    )
    assert not is_call_allowed(plugin_in_spaced_folder, bash_event(command, tool_name="Monitor"))
    assert not is_call_allowed(
        plugin_in_spaced_folder,
        bash_event("", tool_input={"command": command, "dangerouslyDisableSandbox": True}),
    )
    for decoy in (
        {"x": {"dangerouslyDisableSandbox": False}},
        {"description": '"dangerouslyDisableSandbox":false'},
    ):
        unsafe = {"command": command, "dangerouslyDisableSandbox": True}
        assert not is_call_allowed(
            plugin_in_spaced_folder, bash_event("", tool_input=unsafe | decoy)
        )
        assert not is_call_allowed(
            plugin_in_spaced_folder, bash_event("", tool_input=decoy | unsafe)
        )
    assert is_call_allowed(
        plugin_in_spaced_folder,
        bash_event("", tool_input={"command": command, "dangerouslyDisableSandbox": False}),
    )
    assert not is_call_allowed(
        plugin_in_spaced_folder, bash_event(command, extra={"command": "rm -r x"})
    )
    assert not is_call_allowed(
        plugin_in_spaced_folder,
        bash_event("ls", tool_input={"file_path": f'","command":"{command}'}),
    )
    assert not is_call_allowed(plugin_in_spaced_folder, bash_event(f"{command} {'x' * 10_000}"))
    assert not is_call_allowed(plugin_in_spaced_folder, bash_event(command), RESUME_HOOKS_CHILD="1")


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"\xff\x00", b'{"tool_name":"Bash","tool_input":{"command":"'], ids=repr
)
def test_invalid_events_get_no_reply(plugin_in_spaced_folder: PluginCopy, body: bytes) -> None:
    """If the event is invalid, the hook exits with 0 and prints nothing."""
    assert not is_call_allowed(plugin_in_spaced_folder, body)


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("it's", '"ENGINE"'),
        ("a$HOME", ""),
        ("a`id`", ""),
        ('a"b', ""),
        ("a;id", '"ENGINE"'),
        ("é", '"ENGINE"'),
    ],
)
def test_a_plugin_folder_may_have_special_characters(
    tmp_path: Path, name: str, quoted: str
) -> None:
    """If the plugin's folder has special characters, its path is allowed only in quotes that protect them.

    ``quoted`` is "" if the path cannot be quoted safely.
    """
    plugin = copy_plugin_to(tmp_path, name)
    for spelling in ("ENGINE", "'ENGINE'", '"ENGINE"'):
        body = bash_event(insert_launcher_path(plugin, f"{spelling} search x"))
        assert is_call_allowed(plugin, body) == (quoted == '"ENGINE"' and spelling != "ENGINE" and
                                         (spelling == quoted or "'" not in name)), spelling  # fmt: skip


def test_a_plugin_folder_may_end_with_a_slash(plugin_in_spaced_folder: PluginCopy) -> None:
    """There may be one or two slashes between the plugin's folder and the rest of the launcher's path.

    Client 2.1.112 adds a slash to the end of an installed plugin's folder.
    """
    root = f"{plugin_in_spaced_folder.root}/"
    for slashes in ("/", "//"):
        command = f'"{plugin_in_spaced_folder.root}{slashes}hooks/engine" search x'
        assert is_call_allowed(
            plugin_in_spaced_folder, bash_event(command), CLAUDE_PLUGIN_ROOT=root
        )
    assert not is_call_allowed(
        plugin_in_spaced_folder,
        bash_event(f'"{plugin_in_spaced_folder.root}///hooks/engine" search x'),
        CLAUDE_PLUGIN_ROOT=root,
    )


def test_without_the_plugin_folder_no_command_is_allowed(
    plugin_in_spaced_folder: PluginCopy,
) -> None:
    """If the variable for the plugin's folder is empty or a relative path, no command is allowed."""
    for root in ("", "plugin"):
        assert not is_call_allowed(
            plugin_in_spaced_folder,
            bash_event(f'"{root}/hooks/engine" search x'),
            CLAUDE_PLUGIN_ROOT=root,
        )


WORD_PIECE_STRATEGY = st.sampled_from(
    [*"ab -=\"'\\$();|&<>*~!#{},`\n\té", '\\"', "''", '""', " 'a b' ", ' "a b" ']
)


def arguments_of_launcher(plugin: PluginCopy, command: str, shell: str, folder: Path) -> list[str]:
    """Run a command in an empty folder with a fake launcher, and return the launcher's arguments."""
    launcher = plugin.root / "hooks" / "engine"
    launcher.write_text('#!/bin/sh\nprintf "%s\\0" engine "$@"\n')
    done = subprocess.run(
        [shell, "-c", command], cwd=folder, env=plugin.env, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr, list(folder.iterdir())) == (0, b"", [])
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORD_PIECE_STRATEGY, max_size=12).map("".join))
@example("'\"'a")
@example("\"'\" '\"' =a")
@example('"\\\\" "')
def test_an_allowed_command_runs_only_the_launcher(
    plugin_in_spaced_folder: PluginCopy, tmp_path: Path, words: str
) -> None:
    """An allowed command with random words runs the launcher once, with exactly these words."""
    command = insert_launcher_path(plugin_in_spaced_folder, f'"ENGINE" search {words}')
    if not is_call_allowed(plugin_in_spaced_folder, bash_event(command)):
        return
    expected = ["engine", *shlex.split(command)[1:]]
    empty = tmp_path / "empty"
    empty.mkdir(exist_ok=True)
    for shell in ("/bin/sh", "/bin/bash"):
        assert arguments_of_launcher(plugin_in_spaced_folder, command, shell, empty) == expected, (
            command
        )


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_the_command_resume_hooks_runs_the_launcher(
    plugin_in_spaced_folder: PluginCopy, shell: list[str]
) -> None:
    """If a command begins with ``resume-hooks``, the hook replaces this name with the launcher's path.

    Openings and digests contain such commands. A program called ``resume-hooks`` on PATH is not
    run.
    """
    inherited = {"words": "x", "input": ',"updatedInput":{"command":"id"}'}
    for command in READING_COMMANDS:
        if not command.startswith('"ENGINE"'):
            continue
        named = bash_event(command.replace('"ENGINE"', "resume-hooks"))
        runs = {"updatedInput": {"command": insert_launcher_path(plugin_in_spaced_folder, command)}}
        allow = ALLOW_REPLY["hookSpecificOutput"] | runs
        assert hook_reply(plugin_in_spaced_folder, named, *shell, **inherited) == {
            "hookSpecificOutput": allow
        }, command
        assert is_call_allowed(
            plugin_in_spaced_folder,
            bash_event(insert_launcher_path(plugin_in_spaced_folder, command)),
            *shell,
            **inherited,
        )
    for why, command in COMMANDS_WITHOUT_REPLY.items():
        assert not is_call_allowed(
            plugin_in_spaced_folder, bash_event(command.replace('"ENGINE"', "resume-hooks")), *shell
        ), why


WORD_STRATEGY = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\\"), max_size=20
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORD_STRATEGY, max_size=4))
def test_any_quoted_words_are_allowed(
    plugin_in_spaced_folder: PluginCopy, words: list[str]
) -> None:
    """Inside quotes, all words are allowed if they contain no backslashes or line breaks."""
    assert is_call_allowed(
        plugin_in_spaced_folder,
        bash_event(
            insert_launcher_path(plugin_in_spaced_folder, f'"ENGINE" search {shlex.join(words)}')
        ),
    )


def test_the_allow_hook_costs_one_shell_and_one_child_process(
    plugin_in_spaced_folder: PluginCopy,
) -> None:
    """For a command that contains ``hooks``, the hook runs one shell and one ``cat``.

    For other commands, the client does not call the hook at all.
    """
    (group,) = json.loads((REPO / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"][
        "PreToolUse"
    ]
    assert group["matcher"] == "Bash"
    assert [hook["if"] for hook in group["hooks"]] == ["Bash(*hooks*)"]
    said, *cost = trace_hook(
        plugin_in_spaced_folder,
        "PreToolUse",
        bash_event(insert_launcher_path(plugin_in_spaced_folder, READING_COMMANDS[0])),
    )
    assert (json.loads(said), cost) == (ALLOW_REPLY, [["sh", "cat"], 2])
