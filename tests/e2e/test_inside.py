"""Tests of the plugin's commands in the client.

The user types one line for a handoff, and answers one question for a trim. Neither command sends a
request or needs a paste.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resume_hooks.sessions.opening_layout import NEW_TASK_NOTICE
from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi, Request, last_user_text
from tests.e2e.harness.processes import wait_until
from tests.e2e.harness.replies import Refusal, Reply
from tests.e2e.plugin import (
    ENGINE_ENV,
    LINEAGE_MARKER,
    PARENT_ID,
    children_of_session,
    path_of_open_session,
    text_of_request,
    wait_for_child,
)
from tests.e2e.test_context_rollover import (
    environment_with_client_on_path,
    is_headless_request,
    model_that_summarises,
)
from tests.e2e.test_trim_trigger import assert_outputs_are_replaced
from tests.needs import one_in

QUIET_ENV = ENGINE_ENV | {"RESUME_HOOKS_CLIPBOARD": "none"}
UNKNOWN_ID = "99999999-9999-4999-8999-999999999999"
RUN_ENGINE_STATEMENT = "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
HAND_TYPED_PROMPT = "typed by hand ZULU"
ASK_FIRST_OPTIONS = ("--permission-mode", "default")

MODULE_EVENTS = [
    "session.start", "command.run{command=?}", "command.run{command=?}",
    "command.run{command=resume-hooks:recover-context}", "ui.render{component=Pane} (default matcher key: plugin)",
    "ui.render{component=AbovePrompt} (default matcher key: plugin)",
    "ui.focus{component=Pane} (default matcher key: plugin)", "prompt.submit", "prompt.edit",
    "prompt.change", "turn.start", "session.measure", "session.compact",
    "classic.SessionStart", "tool.call{tool=mcp__resume-hooks__handoff}", "turn.complete",
    "classic.Stop", "classic.StopFailure",
]  # fmt: skip
EVENTS_WITHOUT_CATCH_HANDLER = (
    "session.start", "ui.render", "prompt.edit", "prompt.change", "turn.start", "session.measure",
    "turn.complete", "tool.call",
)  # fmt: skip
"""Events that the module handles with hooks that have no ``.catch``.

The client does not wait for the module's answer to these events, except for the tool call. If the
module's hook for the tool call fails, the model gets the failure as the result of the call.
"""

CLIENT_CALLS = [
    "$.clock.after", "$.clock.sleep", "$.command.register", "$.command.run", "$.model.fork", "$.process.hookEnv",
    "$.process.run", "$.prompt.fill", "$.prompt.read", "$.prompt.submit", "$.session.id", "$.session.info",
    "$.session.model", "$.session.surfaces", "$.session.usage", "$.tool.register", "$.turn.abort", "$.ui.ask",
    "$.ui.close", "$.ui.invalidate", "$.ui.log", "$.ui.open", "$.ui.panes", "$.ui.resolve", "$.ui.status",
]  # fmt: skip
"""Every call that the module makes to the client, in the form in which the client lists it."""


def model_that_summarises_slowly(request: Request) -> Reply | None:
    """Return the summary after two seconds."""
    time.sleep(2)
    return model_that_summarises(request)


def open_real_session(tui: Tui, plugin: Path, env: dict[str, str] | None = None) -> None:
    """Open the real session in a client with the plugin."""
    tui.start(
        ASK_FIRST_OPTIONS, resume=PARENT_ID, plugin_dir=plugin, extra_env=QUIET_ENV | (env or {})
    )


def engine_environment(tmp_path: Path, script: str) -> dict[str, str]:
    """Return an environment in which the module's calls run the Python code ``script`` as the engine.

    All other calls of the engine work normally.
    """
    path = tmp_path / "python"
    path.write_text(
        f"#!{sys.executable}\nimport os, sys, time\n"
        f"if not any(word.endswith('start_module.py') for word in sys.argv):\n    {RUN_ENGINE_STATEMENT}\n"
        f"{script}\n"
    )
    path.chmod(0o755)
    return {"RESUME_HOOKS_PYTHON": str(path)}


def test_one_typed_line_makes_and_opens_a_handoff(
    modern_tui: Tui, plugin: Path, parent: Path
) -> None:
    """``/handoff`` opens the child without a request, with the next step in the input box.

    The input box does not contain the size that was typed before the step. If the user types
    ``/lineage`` after the step, one line says that a command must be alone in the input box, and
    nothing is sent. The next request contains the lineage and the step. The command with the prefix
    ``resume-hooks:`` also makes one handoff. With ``--new-task``, the request contains the files of
    the work, but not the goal or the last messages.
    """
    before = parent.read_bytes()
    open_real_session(modern_tui, plugin)
    modern_tui.submit("/handoff 4k fix the flaky test")
    modern_tui.wait_for("Handed off from")
    modern_tui.wait_until_idle()
    child = wait_for_child(modern_tui.home, parent)
    assert b'"opening_tokens":4000' in child.read_bytes()
    assert modern_tui.input_text() == "fix the flaky test"
    # The input box is not empty, so this command is typed after the step.
    modern_tui.submit("/lineage")
    modern_tui.wait_for("a command runs only if it is alone in the input box")
    modern_tui.wait_until_idle()
    for _ in "/lineage":
        modern_tui.key("BSpace")
    modern_tui.type("now")
    assert wait_until(lambda: modern_tui.input_text() == "fix the flaky test now")
    assert not modern_tui.api.requests
    assert parent.read_bytes().startswith(before)
    modern_tui.key("Enter")
    modern_tui.wait_for("Mock reply 1")
    (request,) = modern_tui.api.main_requests()
    said = text_of_request(request)
    assert LINEAGE_MARKER in said
    assert PARENT_ID in said
    assert "fix the flaky test" in last_user_text(request)
    modern_tui.wait_until_idle()
    assert "Mock reply 1" in child.read_text()
    modern_tui.submit("/resume-hooks:handoff fix it")
    modern_tui.wait_for("Next step: fix it")
    modern_tui.wait_until_idle()
    wait_for_child(modern_tui.home, child)
    assert modern_tui.input_text() == "fix it"
    assert not list((modern_tui.home.config / "resume-hooks" / "pending").glob("handoff-*"))
    modern_tui.key("C-u")
    modern_tui.submit(f"/resume {PARENT_ID}")
    modern_tui.wait_until_gone("Handed off from")
    modern_tui.wait_until_idle()
    modern_tui.submit("/handoff --new-task")
    modern_tui.wait_for("--new-task needs a task")
    modern_tui.submit("/handoff --new-task write the release notes")
    modern_tui.wait_for("New task: write the release notes")
    modern_tui.wait_until_idle()
    assert modern_tui.input_text() == "write the release notes"
    modern_tui.key("Enter")
    modern_tui.wait_for("Mock reply 2")
    said = text_of_request(modern_tui.api.main_requests()[-1])
    assert NEW_TASK_NOTICE in said
    assert "files changed" in said
    assert "goal, in the user's words" not in said
    assert "the assistant's last words" not in said
    assert len(children_of_session(modern_tui.home, parent)) == 2


def test_a_handoff_keeps_a_draft_and_waits_for_an_answer(
    tui: Tui, plugin: Path, parent: Path, tmp_path: Path
) -> None:
    """``/handoff`` keeps a draft in the input box, and waits while the model is answering.

    In the box, the draft follows the next step. The digest contains the complete answer. Text that
    the user typed after the command is not sent to the old session.
    """
    open_real_session(
        tui, plugin, engine_environment(tmp_path, f"time.sleep(2); {RUN_ENGINE_STATEMENT}")
    )
    tui.submit("/handoff step one")
    tui.type("a draft of mine")
    tui.wait_for("Handed off from")
    tui.wait_until_idle()
    assert tui.input_text().split() == ["step", "one", "a", "draft", "of", "mine"]
    assert not tui.api.requests
    child = wait_for_child(tui.home, parent)
    tui.api.script = [(120.0, "Slow reply done.")]
    tui.key("Enter")
    tui.wait_for("esc to interrupt|…")
    tui.submit("/handoff go on")
    for behind in ("with the readme", "then the changelog"):
        tui.submit(behind)
        tui.wait_for(f"{behind}\n")
    tui.api.release_delayed_replies()
    tui.wait_for("Next step: go on")
    tui.wait_until_idle()
    words = " ".join(tui.input_text().split())
    assert words == "go on with the readme then the changelog"
    assert "Slow reply done." in child.read_text()
    opening = wait_for_child(tui.home, child).read_text()
    assert "Slow reply done." in opening
    assert "with the readme" not in opening
    assert len(tui.api.main_requests()) == 1


def test_trim_untrim_and_reading_commands_answer_directly(
    modern_tui: Tui, plugin: Path, parent: Path
) -> None:
    """``/lineage``, ``/trim`` and ``/untrim`` answer immediately and send nothing to the model.

    If the user answers ``/trim`` with Esc or "not now", nothing changes. The first choice in the
    list opens a trimmed copy, and ``/untrim`` opens a copy with the complete contents.
    """
    open_real_session(modern_tui, plugin)
    for typed, shown in {
        "/lineage": "oldest first",
        "/untrim": "Nothing in this session is trimmed",
    }.items():
        modern_tui.submit(typed)
        modern_tui.wait_for(shown)
        modern_tui.wait_until_idle()
    modern_tui.submit(">lineage")
    modern_tui.wait_for("operation blocked by hook")
    assert wait_until(lambda: not modern_tui.input_text()), "what is typed next would follow it"
    for key in ("Escape", "3"):
        modern_tui.submit("/trim")
        modern_tui.wait_for("1. Open the trimmed copy")
        assert re.search(r"a resume sends.*\n.*saves about", modern_tui.text())
        modern_tui.wait_until_idle(2)
        modern_tui.key(key)
        modern_tui.wait_for("Cancelled.")
        modern_tui.wait_until_idle()
        assert children_of_session(modern_tui.home, parent) == []
    modern_tui.submit("/trim")
    modern_tui.submit("now go on BETA")  # The client queues this prompt.
    modern_tui.wait_for("1. Open the trimmed copy")
    modern_tui.wait_until_idle(2)
    modern_tui.key("1")
    modern_tui.wait_until_gone("1. Open the trimmed copy")
    trimmed = wait_for_child(modern_tui.home, parent)
    assert wait_until(lambda: path_of_open_session(modern_tui) == trimmed)
    modern_tui.wait_until_idle()
    assert not modern_tui.api.requests, "the session that is left answers nothing"
    assert modern_tui.input_text() == "now go on BETA"
    modern_tui.key("Enter")
    modern_tui.wait_for("Mock reply 1")
    said = text_of_request(modern_tui.api.main_requests()[-1])
    assert "now go on BETA" in said
    assert not [shown for shown in ("Cancelled.", "lineage, oldest first") if shown in said]
    assert_outputs_are_replaced(said, parent, trimmed)
    modern_tui.wait_until_idle()
    modern_tui.submit("/untrim")
    whole = wait_for_child(modern_tui.home, trimmed)
    assert wait_until(lambda: path_of_open_session(modern_tui) == whole)
    modern_tui.wait_until_idle()
    modern_tui.submit("now go on GAMMA")
    modern_tui.wait_for("Mock reply 2")
    said = text_of_request(modern_tui.api.main_requests()[-1])
    assert "now go on BETA" in said
    assert "suppressed" not in said
    assert wait_until(lambda: "now go on GAMMA" in whole.read_text())


def test_a_rollover_can_be_requested_again_after_esc(tui: Tui, plugin: Path, parent: Path) -> None:
    """After Esc during ``/rollover``, a second ``/rollover`` adds the summary to the child of the first.

    Esc stops the model. The second ``/rollover`` also opens the child. There is no client on PATH,
    so the engine starts the client that called the engine.
    """
    open_real_session(tui, plugin, {"PATH": "/usr/bin:/bin"})
    tui.api.script = [Refusal(400, "no")] * 3
    tui.submit("/rollover focus on BETA")
    tui.wait_for("asking a model for the summary")
    assert wait_until(lambda: bool(tui.api.requests))
    tui.key("Escape")
    tui.wait_until_gone("asking a model for the summary")
    child = wait_for_child(tui.home, parent)
    tui.wait_for(rf"no summary\.\s+/resume\s+{child.stem}")
    tui.wait_until_idle()
    tui.api.script = model_that_summarises_slowly
    tui.submit("/rollover focus on BETA")
    tui.wait_for("asking a model for the summary")
    tui.wait_for("Rolled over from")
    tui.wait_until_gone("asking a model for the summary")
    assert children_of_session(tui.home, parent) == [child]
    assert b"summary by" in child.read_bytes()
    assert all(is_headless_request(request) for request in tui.api.main_requests())
    tui.api.script = ()
    tui.submit("now go on GAMMA")
    tui.wait_for("Mock reply [0-9]")
    said = text_of_request(tui.api.main_requests()[-1])
    for part in (LINEAGE_MARKER, "goal: Teach the parser BETA.", "digest of", "now go on GAMMA"):
        assert part in said
    tui.wait_until_idle()
    assert "now go on GAMMA" in child.read_text()


@pytest.mark.wide
def test_a_failed_summary_of_a_rollover_is_reported(
    tui: Tui, plugin: Path, parent: Path, tmp_path: Path
) -> None:
    """If the model fails, ``/rollover`` reports the failure and opens one child without a summary."""
    open_real_session(tui, plugin, environment_with_client_on_path(tui.version, tmp_path / "bin"))
    tui.api.script = [Refusal(400, "no")] * 3
    tui.submit("/rollover")
    tui.wait_for("No summary: ")
    tui.wait_for("Rolled over from")
    assert len(children_of_session(tui.home, parent)) == 1


def test_back_to_a_mark_keeps_only_the_report(tui: Tui, plugin: Path, parent: Path) -> None:
    """``/back`` opens a child that contains the report but not the turns after the mark.

    If the goal in ``/mark`` contains Markdown characters, it is shown as the user typed it.
    """
    # This setting prevents the question about archived copies.
    archives = {"RESUME_HOOKS_VAULT": "20G"}
    open_real_session(tui, plugin, archives)
    tui.submit("/mark try *.py and `*.txt`")
    tui.wait_for(r"goal: try \*\.py and `\*\.txt`$")
    tui.submit("explore DELTA")
    tui.wait_for("Mock reply 1")
    tui.wait_until_idle()
    tui.submit("/back it is slower")
    tui.wait_for("Back to 20")
    tui.wait_until_idle()
    child = wait_for_child(tui.home, parent)
    tui.submit("/recall")
    tui.wait_for("Copy the text above into")
    tui.wait_until_idle()
    tui.submit("now go on BETA")
    tui.wait_for("Mock reply 2")
    said = text_of_request(tui.api.main_requests()[-1])
    assert "it is slower" in said
    assert "explore DELTA" not in said
    assert "what was done here" not in said
    tui.wait_until_idle()
    assert "now go on BETA" in child.read_text()


@pytest.mark.parametrize(
    "failures",
    [
        {
            "sys.exit('the engine is ill')": "the engine is ill",
            f'print(\'{{"open": "{UNKNOWN_ID}", "by_hand": "{HAND_TYPED_PROMPT}", "fill": "x"}}\')': HAND_TYPED_PROMPT,
        },
        pytest.param({"print('no json')": "JSON"}, marks=pytest.mark.wide),
        pytest.param(
            {"time.sleep(60)": r"(?i)timed out|timeout|15,?000|15 ?s"}, marks=pytest.mark.wide
        ),
    ],
    ids=["fails, then an id that is gone", "talks", "hangs"],
)
def test_a_failure_is_reported_and_the_session_continues(
    tui: Tui, plugin: Path, parent: Path, tmp_path: Path, failures: dict[str, str]
) -> None:
    """If the engine fails, ``/handoff`` reports the failure, and the next prompt is answered.

    The report is not sent to the model. If the module gets no answer from the engine,
    ``/resume-hooks:handoff`` is answered by the hook.
    """
    does = tmp_path / "does.py"
    open_real_session(
        tui, plugin, engine_environment(tmp_path, f"exec(open({str(does)!r}).read())")
    )
    for number, (broken, shown) in enumerate(failures.items(), 1):
        does.write_text(broken)
        tui.submit("/handoff go on")
        tui.wait_for(shown)
        tui.wait_until_idle()
        assert children_of_session(tui.home, parent) == []
        assert len(tui.api.main_requests()) == number - 1
        tui.submit(f"still here GAMMA {number}")
        tui.wait_for(f"Mock reply {number}")
        tui.wait_until_idle()
        said = text_of_request(tui.api.main_requests()[-1])
        assert f"still here GAMMA {number}" in said
        assert HAND_TYPED_PROMPT not in said
        assert "the engine is ill" not in said
    does.write_text("sys.exit(1)")
    tui.submit("/resume-hooks:handoff go on")
    tui.wait_for("in Claude Code +/resume")
    assert len(children_of_session(tui.home, parent)) == 1
    assert len(tui.api.main_requests()) == len(failures)


@pytest.mark.wide
def test_the_users_own_handoff_command_runs(tui: Tui, plugin: Path, parent: Path) -> None:
    """If the user has a command ``/handoff``, this command runs, and ``/resume-hooks:handoff`` hands off."""
    own = tui.home.config / "commands"
    own.mkdir()
    (own / "handoff.md").write_text("Say MINE to $ARGUMENTS")
    open_real_session(tui, plugin)
    tui.submit("/handoff somebody")
    tui.wait_for("Mock reply 1")
    assert "Say MINE to somebody" in text_of_request(tui.api.main_requests()[-1])
    assert children_of_session(tui.home, parent) == []
    tui.submit("/resume-hooks:handoff on we go")
    tui.wait_for("Handed off from")
    assert len(children_of_session(tui.home, parent)) == 1


def test_the_engine_refuses_calls_from_the_model_s_shell(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path, parent: Path
) -> None:
    """The engine refuses every call in which the model's shell pretends to be the module.

    The test tries several ways in which a transcript could teach the model to imitate the client.
    """
    event = json.dumps({"command": "handoff", "args": "x", "screen": True, "session_id": PARENT_ID})
    ask = f"sh '{plugin}/hooks/engine' --module"
    listed = '{"pid": %s, "procStart": "%s"}'
    forge = f"""printf '{listed}' $$ $(cut -d' ' -f22 /proc/$$/stat) >"$CLAUDE_CONFIG_DIR/sessions/$$.json"; """
    attempts = [
        f"echo '{event}' | {ask}",
        f"echo '{event}' | env -u CLAUDECODE CLAUDE_PID=$PPID {ask}",
        f"echo '{event}' >e.json; exec {ask} <e.json",
        f"{forge} echo '{event}' | {ask}",
        f'{forge} {ask} <e.json; rm -f "$CLAUDE_CONFIG_DIR/sessions/$$.json"',
        f"setsid -w {ask} <e.json",
    ]
    api.script = [{"name": "Bash", "input": {"command": attempt}} for attempt in attempts]
    done = run_print(
        client, home, api, "try it", resume=PARENT_ID, plugin_dir=plugin, extra_env=QUIET_ENV,
        extra_args=("--permission-mode", "bypassPermissions"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = text_of_request(api.main_requests()[-1])
    assert said.count("only Claude Code itself gets an answer here") == len(attempts)
    assert children_of_session(home, parent) == []


def test_print_mode_makes_the_child_without_a_question(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path, parent: Path
) -> None:
    """In ``claude -p``, ``/handoff`` makes a child without a question and prints a command that opens it.

    ``/trim`` makes no child but prints the command that would make one.
    """
    done = run_print(
        client,
        home,
        api,
        "/handoff 4k go on",
        resume=PARENT_ID,
        plugin_dir=plugin,
        extra_env=QUIET_ENV,
    )
    (child,) = children_of_session(home, parent)
    assert f"/resume {child.stem}" in done.text
    assert b'"opening_tokens":4000' in child.read_bytes()
    refused = run_print(
        client,
        home,
        api,
        "/handoff 99k go on",
        resume=PARENT_ID,
        plugin_dir=plugin,
        extra_env=QUIET_ENV,
    )
    assert "99k is not a valid size" in refused.text
    assert children_of_session(home, parent) == [child]
    asked = run_print(
        client, home, api, "/trim", resume=PARENT_ID, plugin_dir=plugin, extra_env=QUIET_ENV
    )
    assert "To create it: /trim yes" in asked.text
    assert not api.requests


@pytest.mark.parametrize("setting", one_in(2, ["--safe-mode", "disableAllHooks"]))
def test_no_plugin_code_runs_if_hooks_are_disabled(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path, parent: Path, setting: str
) -> None:
    """If hooks are turned off, a prompt is answered as usual, and no child is made."""
    if setting == "disableAllHooks":
        home.write_settings({"disableAllHooks": True})
    args = [setting] if setting.startswith("-") else []
    done = run_print(
        client, home, api, "hello", resume=PARENT_ID, plugin_dir=plugin, extra_env=QUIET_ENV, extra_args=args
    )  # fmt: skip
    assert done.text == "Mock reply 1."
    assert children_of_session(home, parent) == []


def test_the_command_claude_plugin_test_passes(
    client: ClientVersion, home: ClientHome, plugin: Path
) -> None:
    """``claude plugin test`` runs the module's tests without a session, and all of them pass.

    Prepared answers are used in place of the engine.
    """
    shutil.copytree(Path(__file__).parent / "module", plugin / "tests")
    done = subprocess.run(
        [*client.command, "plugin", "test", str(plugin)],
        env=home.env(), capture_output=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ *[1-9]\d* pass\n *0 fail", done.stdout + done.stderr, re.MULTILINE)


def test_the_module_uses_only_the_pinned_events_and_calls(
    client: ClientVersion, home: ClientHome, plugin: Path
) -> None:
    """The client's validation lists exactly the events and calls that are expected of the module.

    The plugin also passes the strict rules of the plugin directory.
    """
    done = subprocess.run(
        [*client.command, "plugin", "validate", "--strict", "--profile", "directory", str(plugin)],
        env=home.env(), capture_output=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "Validation passed" in done.stdout
    (hooks,) = re.findall(r"register\.mjs hooks: (.*)", done.stdout)
    calls = ", ".join(re.findall(r"register\.mjs calls: (.*)", done.stdout))
    assert hooks.split(", ") == MODULE_EVENTS
    assert re.findall(r"\$\.[\w.]+", calls) == CLIENT_CALLS
    assert done.stdout.count("gating hook with .catch") == sum(
        not heard.startswith(EVENTS_WITHOUT_CATCH_HANDLER) for heard in MODULE_EVENTS
    )
    assert done.stdout.count("gating hook without .catch") == 1, "the tool's"
