"""Tests of digests of Codex sessions, for example with polled commands and rejected patches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resume_hooks.parts.codex.transcripts.items import SUMMARY_PREFIX
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.calls import collect_latest_calls
from resume_hooks.reading.digest.entries import REQUEST_DURING_TURN_ENTRY_TEXT, Digest, MessageKind
from resume_hooks.sessions.locate import resolve_locator
from tests.parts.codex.rollouts import (
    THREAD_ID,
    Line,
    call_line,
    compaction_line,
    item_line,
    message_line,
    meta_line,
    output_line,
    rollout_line,
    write_rollout,
)
from tests.reading.digest.talk import entry_notes, entry_texts, message_texts, request_texts

SCRIPT_OUTPUT_HEADER = "Script completed\nWall time 1.0 seconds\nOutput:\n"


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Where:
    """Return the paths of a temporary home with an empty CODEX_HOME."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    (tmp_path / ".codex").mkdir()
    return Where()


def digest_of_lines(where: Where, lines: list[Line]) -> Digest:
    """Return the digest of a thread with these lines after its prompt."""
    write_rollout(
        Path(where.environ["HOME"]) / ".codex", [meta_line(), message_line("user", "go"), *lines]
    )
    return build_digest(resolve_locator(THREAD_ID, "/", where, allow_other_agents=True), where)


def poll_line(call_id: str, session: int) -> Line:
    """Return a call that polls a running command."""
    arguments = json.dumps({"session_id": session, "chars": ""})
    return item_line("function_call", name="write_stdin", arguments=arguments, call_id=call_id)


def script_lines(call_id: str, code: str, *printed: str) -> list[Line]:
    """Return a script in code mode and the output parts that it printed."""
    parts = [{"type": "input_text", "text": text} for text in (SCRIPT_OUTPUT_HEADER, *printed)]
    return [
        item_line("custom_tool_call", name="exec", input=code, call_id=call_id),
        output_line(call_id, parts, kind="custom_tool_call_output"),
    ]


def script_of_command(command: str) -> str:
    """Return the code of a script that runs a command in a folder and prints its output."""
    fields = f'cmd:{json.dumps(command)},workdir:"/p"'
    return f"const r = await tools.exec_command({{{fields}}}); text(r.output);"


def lines_of_polling_scripts(command: str, *polls: str) -> list[Line]:
    """Return a command that scripts start and poll, without an exit status."""
    started = f"const r = await tools.exec_command({{cmd:{json.dumps(command)}}}); text(r.output);"
    lines = script_lines("s0", started, "", "SESSION_ID=77")
    for number, printed in enumerate(polls, 1):
        code = 'const r = await tools.write_stdin({session_id:77,chars:""}); text(r.output);'
        lines += script_lines(f"s{number}", code, printed)
    return lines


def test_a_missing_file_is_a_failure_if_the_exit_status_is_unknown(where: Where) -> None:
    """If a command has no exit status and its output says that a file is missing, the command failed."""
    made = digest_of_lines(
        where, lines_of_polling_scripts("make test", "rg: 'a b': No such file or directory\n")
    )
    assert entry_texts(made, "commands") == []


@pytest.mark.parametrize(("exit_status", "listed_commands"), [(0, ["make test"]), (2, [])])
def test_the_last_poll_determines_whether_a_command_succeeded(
    where: Where, exit_status: int, listed_commands: list[str]
) -> None:
    """The exit status in the last poll of a command determines whether the command succeeded."""
    running = "Process running with session ID 5\nOutput:\n1 of 2"
    lines = [
        call_line("1", "make test"),
        output_line("1", running),
        poll_line("2", 5),
        output_line("2", running),
        poll_line("3", 5),
        output_line("3", f"Process exited with code {exit_status}\nOutput:\nall of it"),
    ]
    made = digest_of_lines(where, lines)
    assert entry_texts(made, "commands") == listed_commands
    assert len(entry_texts(made, "errors")) == (exit_status != 0)
    assert not any("running" in text for text in entry_texts(made, "pending"))


def test_a_polled_command_without_an_exit_status_is_not_a_success(where: Where) -> None:
    """A polled command without an exit status has the note "exit status not recorded"."""
    made = digest_of_lines(where, lines_of_polling_scripts("make test", "", "ok 1 adds\n"))
    assert entry_notes(made, "commands") == {"make test": "exit status not recorded"}


def test_a_check_can_pass_in_a_script_with_another_failure(where: Where) -> None:
    """A check that passed in a script counts as passed, even if a formatter failed in the same script.

    If the check itself failed, it is not listed as passed.
    """
    passed = "running 6 tests\ntest result: ok. 6 passed; 0 failed\n"
    first = "cargo fmt\ncargo fmt --check\ncargo test a::b\n"
    last = "cargo fmt --check\ncargo test a::b\ngit diff --check\n"
    lines = script_lines("1", script_of_command(first), passed)
    lines += script_lines("2", script_of_command(last), f"Diff in /p/a.rs:3:\n-x\n+y\n{passed}")
    made = entry_notes(digest_of_lines(where, lines), "commands")
    assert made["cargo test a::b"].startswith(
        "in /p, 2 runs, exit status not recorded, passed in another command, :"
    )
    assert made["cargo fmt --check"] == "in /p, 2 runs, exit status not recorded"
    failed = "test result: FAILED. 5 passed; 1 failed\n"
    lines += script_lines("3", script_of_command(last), failed)
    made = entry_notes(digest_of_lines(where, lines), "commands")
    assert made["cargo test a::b"] == "in /p, 3 runs, exit status not recorded"


def test_a_failure_in_the_last_poll_fails_the_command(where: Where) -> None:
    """A failure in a command's last poll marks the command as failed, even if a task name precedes it."""
    made = digest_of_lines(
        where, lines_of_polling_scripts("make test", "1 of 2\n", "[test] ERROR task failed\n")
    )
    assert entry_texts(made, "commands") == []
    assert len(entry_texts(made, "errors")) == 1


def test_a_running_command_continues_as_another_task(where: Where) -> None:
    """A running command continues as another task, whose last poll shows that the command failed.

    The script prints the id of the command's shell session only later.
    """
    lines = [
        *script_lines("0", 'text(await tools.exec_command({cmd:"make test"}));'),
        item_line("function_call", name="wait", arguments='{"cell_id":"4"}', call_id="1"),
        output_line(
            "1",
            [
                {"type": "input_text", "text": "Script completed\n"},
                {"type": "input_text", "text": "SESSION_ID=8"},
            ],
        ),
        poll_line("2", 8),
        output_line("2", "Process exited with code 1\nOutput:\nno rule"),
    ]
    lines[1]["payload"]["output"][0]["text"] = "Script running with cell ID 4\nOutput:\n"
    assert entry_texts(digest_of_lines(where, lines), "commands") == []


def test_each_commit_of_a_polled_command_has_its_hash(where: Where) -> None:
    """Each commit of a polled command is listed with the hash that git printed in the poll."""
    printed = "[main a54fd64] fix: one\n 1 file changed\n[main 42361d2] fix: two\n 1 file changed\n"
    command = 'git commit -qm "fix: one" a && git commit -m "fix: two" b'
    made = digest_of_lines(where, lines_of_polling_scripts(command, printed))
    assert entry_texts(made, "artefacts") == [
        "commit 42361d2 fix: two",
        "commit a54fd64 fix: one",
    ]
    assert "last commit 42361d2" in entry_notes(made, "now").values()


def test_a_rejected_patch_is_not_a_change(where: Where) -> None:
    """The file of a rejected patch is not listed as changed."""
    patch = "*** Begin Patch\n*** Update File: /p/a.py\n@@\n-x\n+y\n*** End Patch"
    lines = [
        item_line("custom_tool_call", name="apply_patch", input=patch, call_id="1"),
        output_line(
            "1", "apply_patch verification failed: Failed to find expected lines in /p/a.py"
        ),
    ]
    assert entry_texts(digest_of_lines(where, lines), "changed") == []


def test_only_the_last_poll_of_a_series_is_shown(where: Where) -> None:
    """If a command was polled several times, only the last poll is shown, and it is marked as the latest."""
    lines = lines_of_polling_scripts("gh run watch 1", *(f"job {n} failed" for n in range(9)))
    write_rollout(
        Path(where.environ["HOME"]) / ".codex", [meta_line(), message_line("user", "go"), *lines]
    )
    session = resolve_locator(THREAD_ID, "/", where, allow_other_agents=True)
    calls = collect_latest_calls(session, build_digest(session, where), 20_000)
    polls = [call.text for call in calls if call.text.startswith("later output of: ")]
    assert len(polls) == 1
    assert "[the latest of several such calls]" in polls[0]
    assert polls[0].startswith("later output of: gh run watch 1\n")
    assert polls[0].endswith("job 8 failed")


def test_the_start_of_a_command_is_not_shown_next_to_its_later_output(where: Where) -> None:
    """A polled command is shown only with its last poll. Any other command is shown with its start."""
    running = "Process running with session ID %d\nOutput:\n1 of 2"
    lines = [
        call_line("1", "make test"),
        output_line("1", running % 5),
        poll_line("2", 5),
        output_line("2", running % 5),
        poll_line("3", 5),
        output_line("3", "Process exited with code 0\nOutput:\n2 of 2"),
        call_line("4", "make serve"),
        output_line("4", running % 6),
    ]
    write_rollout(
        Path(where.environ["HOME"]) / ".codex", [meta_line(), message_line("user", "go"), *lines]
    )
    session = resolve_locator(THREAD_ID, "/", where, allow_other_agents=True)
    calls = collect_latest_calls(session, build_digest(session, where), 20_000)
    heads = [call.text.partition("\n")[0] for call in calls]
    assert heads == ["later output of: make test", "Bash: make serve"]


def test_the_last_poll_shows_an_open_failure(where: Where) -> None:
    """If the failure of a command is still open, the command's last poll is shown first.

    The entry for this poll shows the errors.
    """
    errors = "\n".join(f"error: no variant {number}" for number in range(80))
    lines = lines_of_polling_scripts("cargo test", "Compiling", errors)
    for number in range(18):
        lines += [
            call_line(f"r{number}", f"sed -n '1p' part_{number}.rs"),
            output_line(f"r{number}", "x" * 700),
        ]
    write_rollout(
        Path(where.environ["HOME"]) / ".codex", [meta_line(), message_line("user", "go"), *lines]
    )
    session = resolve_locator(THREAD_ID, "/", where, allow_other_agents=True)
    first, *_ = collect_latest_calls(session, build_digest(session, where), 9_000)
    assert first.text.startswith("later output of: cargo test")
    assert "no variant 40\n" in first.text


def test_a_plan_that_a_script_writes_is_the_task_list(where: Where) -> None:
    """A plan that a script updates is shown as the todo list, and the script's command is listed too."""
    code = (
        'await tools.update_plan({plan:[{step:"Write it",status:"completed"},\n'
        '  {"step":"Test it","status":"pending"}]});\n'
        'const r = await tools.exec_command({cmd:"make test"}); text(r.output);'
    )
    made = digest_of_lines(where, script_lines("1", code, "all passed"))
    assert entry_texts(made, "todos") == ["Test it"]
    assert entry_texts(made, "commands") == ["make test"]


def test_a_text_does_not_answer_a_later_request(where: Where) -> None:
    """An assistant's text does not answer a request that the user sends later in the same turn."""
    lines = [
        message_line("assistant", "I stay on the run and then do one final sweep"),
        call_line("1", "make test"),
        output_line("1", "Process exited with code 0\nOutput:\nok"),
        message_line("user", "and the feedback?"),
    ]
    assert REQUEST_DURING_TURN_ENTRY_TEXT in entry_texts(digest_of_lines(where, lines), "now")


def test_a_long_command_template_is_shortened(where: Where) -> None:
    """The template of an answered command is shortened if it is long. The user's own text is kept in full."""
    template = "## Outline\n\n1. Run `setup.sh` from the root.\n" + "2. Follow the rules.\n" * 200
    prompt = (
        "\n## User Input\n\n```text\nmake it red\n```\n\n"
        f"You **MUST** consider the user input before proceeding.\n\n{template}"
    )
    (request,) = request_texts(
        digest_of_lines(where, [message_line("user", prompt), message_line("assistant", "Done")])
    )[1:]
    assert request.startswith("make it red\n[command's template:]\n## Outline\n1. Run `setup.sh`")
    assert request.endswith(" characters of the template ...]")
    assert len(request) < 500


def test_the_template_of_an_open_request_is_complete(where: Where) -> None:
    """The template of a command that was not answered is shown in full."""
    prompt = (
        "\n## User Input\n\n```text\n\n```\n\nYou **MUST** consider the user input.\n\n"
        f"## Outline\n\n{'1. Follow the rules. ' * 100}\n\nThen stop."
    )
    (request,) = request_texts(digest_of_lines(where, [message_line("user", prompt)]))[1:]
    assert request.endswith("Then stop.")


def test_rules_in_a_command_template_are_not_user_constraints(where: Where) -> None:
    """Rules in a command's template are not constraints, but rules in the user's own text are."""
    prompt = (
        "\n## User Input\n\n```text\nYou must always write a failing test first.\n```\n\n"
        "You **MUST** consider the user input before proceeding.\n\n"
        "Do not create a new template; always edit the existing file."
    )
    made = digest_of_lines(where, [message_line("user", prompt), message_line("assistant", "Done")])
    assert entry_texts(made, "constraints") == ["You must always write a failing test first."]


def test_attached_files_follow_the_request(where: Where) -> None:
    """Files that the user attached are listed after the request. The editor's other additions are omitted."""
    prompt = (
        "# Context from my IDE setup:\n\n## Active file: a.py\n\n# Files mentioned by the user:\n\n"
        "## The plan: /p/pasted-text.txt\n\n## My request for Codex:\ni want this\n"
    )
    assert request_texts(digest_of_lines(where, [message_line("user", prompt)]))[1:] == [
        "i want this\nFiles that the user attached:\n- The plan: /p/pasted-text.txt"
    ]


def test_an_approved_plan_is_shown_once(where: Where) -> None:
    """An approved plan is shown once, in the prompt that repeats it.

    The message that proposed the plan refers to the prompt.
    """
    plan = "# Move the parser\n\n1. Write a test that fails.\n2. Move it."
    lines = [
        message_line("assistant", f"<proposed_plan>\n{plan}\n</proposed_plan>"),
        message_line("user", f"PLEASE IMPLEMENT THIS PLAN:\n{plan}"),
        message_line("assistant", "Done."),
    ]
    made = digest_of_lines(where, lines)
    shown = "\n".join(message.text for message in made.talk)
    assert shown.count("Write a test that fails") == 1
    assert "[the plan in the prompt :3]" in shown
    assert "the last plan that the user approved: Move the parser" in entry_texts(made, "now")


def test_an_aborted_command_is_not_a_success(where: Where) -> None:
    """A command that the user aborted is listed neither as successful nor as failed.

    The digest says that the request for this command may be unfinished.
    """
    event = rollout_line("event_msg", {"type": "turn_aborted", "reason": "interrupted"})
    lines = [
        call_line("1", "make test"),
        output_line("1", "Wall time: 406.9 seconds\naborted by user"),
        event,
        message_line("user", "now this"),
    ]
    made = digest_of_lines(where, lines)
    assert entry_texts(made, "commands") == entry_texts(made, "errors") == []
    assert any(
        "work on the second-to-last request (:1)," in text for text in entry_texts(made, "now")
    )


def test_an_aborted_run_does_not_close_a_failure(where: Where) -> None:
    """A run that the user aborted does not close the failure of an earlier run."""
    lines = [
        call_line("1", "make test"),
        output_line("1", "Process exited with code 2\nOutput:\nno rule"),
        call_line("2", "make test"),
        output_line("2", "aborted by user after 20.1s"),
    ]
    assert entry_texts(digest_of_lines(where, lines), "errors") == ["`make test` exit 2: no rule"]


@pytest.mark.parametrize(("mode", "is_on"), [("plan", True), ("default", False)])
def test_the_last_collaboration_mode_determines_plan_mode(
    where: Where, mode: str, *, is_on: bool
) -> None:
    """The mode of the last prompt determines whether the digest says that plan mode is on."""
    lines: list[Line] = []
    for each in ("plan", mode):
        lines += [
            rollout_line("turn_context", {"collaboration_mode": {"mode": each}}),
            message_line("user", each),
        ]
    shown = entry_texts(digest_of_lines(where, lines), "now")
    assert any(text.startswith("plan mode is on") for text in shown) is is_on


@pytest.mark.parametrize(
    ("mode", "expected_entries"),
    [("read-only", ["sandbox: read-only, approval on-request"]), ("workspace-write", [])],
)
def test_the_last_sandbox_is_stated_if_it_allows_no_changes(
    where: Where, mode: str, expected_entries: list[str]
) -> None:
    """If the last sandbox is read-only, the digest states this, whichever field names the sandbox."""
    lines: list[Line] = []
    for key, value in (("type", "read-only"), ("type", "workspace-write"), ("mode", mode)):
        context = {"approval_policy": "on-request", "sandbox_policy": {key: value}}
        lines += [
            message_line("user", value),
            rollout_line("turn_context", context),
            message_line("assistant", "done"),
        ]
    now = entry_texts(digest_of_lines(where, lines), "now")
    assert [text for text in now if text.startswith("sandbox")] == expected_entries


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-lc", "make test"],
        ["/bin/zsh", "-l", "-c", "make test"],
        [r"C:\WINDOWS\powershell.exe", "-NoLogo", "-NoProfile", "-Command", "make test"],
        "bash -lc 'make test'",
        "make test",
    ],
)
def test_a_command_in_another_shell_is_the_same_command(where: Where, command: object) -> None:
    """A failure of a command in one shell is closed if the same command succeeds in another shell."""
    arguments = json.dumps({"command": command})
    lines = [
        call_line("1", "make test"),
        output_line("1", "Process exited with code 2\nOutput:\nno rule"),
        item_line("function_call", name="shell", arguments=arguments, call_id="2"),
        output_line("2", "Exit code: 0\nOutput:\nok"),
    ]
    made = digest_of_lines(where, lines)
    assert entry_texts(made, "errors") == []
    assert entry_texts(made, "commands") == ["make test"]


def test_a_rejected_command_is_not_a_success(where: Where) -> None:
    """A command that the user rejected is listed as refused, and neither as successful nor as failed."""
    made = digest_of_lines(
        where, [call_line("1", "make test"), output_line("1", "exec command rejected by user")]
    )
    assert (
        entry_texts(made, "commands")
        == entry_texts(made, "others")
        == entry_texts(made, "errors")
        == []
    )
    assert entry_texts(made, "refusals") == ["refused by the user: Bash make test"]


@pytest.mark.parametrize("subject", ["", " for `git fetch --all`"])
def test_a_command_that_the_sandbox_denied_is_a_failure(where: Where, subject: str) -> None:
    """A command that the sandbox denied is listed as failed with the client's error."""
    denied = (
        f'exec_command failed{subject}: CreateProcess {{ message: "Codex(Sandbox(Denied {{ output: '
        "ExecToolCallOutput { exit_code: 255, stderr: error: cannot open '.git/FETCH_HEAD' }))\" }"
    )
    made = digest_of_lines(where, [call_line("1", "git fetch --all"), output_line("1", denied)])
    assert entry_texts(made, "others") == []
    (error,) = entry_texts(made, "errors")
    assert error.startswith(f"`git fetch --all` failed: exec_command failed{subject}: ")


@pytest.mark.parametrize("folder", ["/p/lib", ""])
def test_paths_of_a_shell_patch_are_relative_to_its_folder(where: Where, folder: str) -> None:
    """Paths in a shell command's patch are relative to the folder of the call or of a ``cd``."""
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch\nEOF"
    command = f"{'' if folder else 'cd /p/lib && '}apply_patch <<'EOF'\n{patch}"
    arguments = json.dumps({"command": ["bash", "-lc", command], "workdir": folder})
    lines = [
        item_line("function_call", name="shell", arguments=arguments, call_id="1"),
        output_line("1", "Exit code: 0\nOutput:\nSuccess. Updated the following files:\nM a.py"),
    ]
    assert entry_texts(digest_of_lines(where, lines), "changed") == ["/p/lib/a.py"]


@pytest.mark.parametrize(
    ("command", "is_reported"), [("gh run watch 1", False), ("make serve", True)]
)
def test_a_watch_before_the_answer_is_not_reported_as_running(
    where: Where, command: str, *, is_reported: bool
) -> None:
    """A command that only watches is not reported as running if the assistant has answered since.

    A command that runs a server is reported.
    """
    lines = [
        call_line("1", command),
        output_line("1", "Process running with session ID 5\nOutput:\n"),
        message_line("assistant", "All checks pass."),
    ]
    shown = entry_texts(digest_of_lines(where, lines), "pending")
    assert any("still running" in text for text in shown) is is_reported


def test_a_script_without_an_exit_status_is_not_a_success(where: Where) -> None:
    """A command in a script without an exit status has the note "exit status not recorded".

    The command has this note whether or not it printed an error.
    """
    code = "const r = await tools.exec_command({cmd:%s}); text(r.output);"
    lines = [
        *script_lines("1", code % '"make lint"', "zsh:1: command not found: linter"),
        *script_lines("2", code % '"cargo test"', "ok"),
    ]
    made = digest_of_lines(where, lines)
    assert entry_notes(made, "commands") == {"cargo test": "exit status not recorded"}
    (failure,) = entry_texts(made, "errors")
    assert failure.startswith("`make lint` exit status not recorded, but: ")


def test_a_branch_of_another_folder_is_not_the_session_branch(where: Where) -> None:
    """A branch in another folder is listed with that folder, and not as the session's branch."""
    lines = [
        call_line("1", "git -C /elsewhere status && cd /elsewhere && git switch -c x"),
        output_line("1", "Process exited with code 0\nOutput:\nSwitched to a new branch 'x'"),
        call_line("2", "cd /elsewhere && git switch -c y"),
        output_line("2", "Process exited with code 0\nOutput:\nSwitched to a new branch 'y'"),
    ]
    shown = entry_texts(digest_of_lines(where, lines), "now")
    assert "in /elsewhere: branch y, when last seen" in shown


def test_the_digest_names_the_folder_of_the_session(where: Where) -> None:
    """The state in a digest begins with the session's folder."""
    assert entry_texts(digest_of_lines(where, []), "now")[0] == "folder: /home/user/proj"


def instructions_message(*rows: str) -> Line:
    """Return the message in which Codex gives the project's instructions to the model."""
    body = "\n".join(rows)
    return message_line(
        "user", f"# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\n{body}\n</INSTRUCTIONS>"
    )


def test_short_instructions_are_quoted_in_full(where: Where) -> None:
    """The rules and commands of short instructions are quoted in full, without Codex's list of skills."""
    given = instructions_message(
        "# Guide\n\nPull request titles must follow Conventional Commits.\n",
        "Never edit the registry of plugins.\n\n- `make lint`: all linters\n",
        "```bash\nmake test # all tests\nvalue = build\n```",
        "- `fix(api): check it`\n",
        "## Skills\nA skill is a set of local instructions. Always open the pull request skill.",
    )
    made = digest_of_lines(
        where, [given, message_line("user", "open a pull request with a good title")]
    )
    assert entry_texts(made, "instructions") == [
        "AGENTS.md of /p",
        "Pull request titles must follow Conventional Commits.",
        "Never edit the registry of plugins.",
        "make test # all tests",
        "`make lint`: all linters",
    ]


def test_an_omitted_item_of_a_quoted_list_is_marked(where: Where) -> None:
    """If an item of a quoted list is omitted, the item before it ends with an ellipsis."""
    given = instructions_message(
        "# Guide\n\n## Config loading\n",
        "1. The global file of the user\n2. `p.toml`\n3. The local file, which git ignores",
    )
    digest = digest_of_lines(where, [given, message_line("user", "mend the config loading")])
    assert entry_texts(digest, "instructions")[1:] == [
        "Config loading: The global file of the user …",
        "Config loading: The local file, which git ignores",
    ]


def test_steps_for_a_special_purpose_are_not_rules(where: Where) -> None:
    """Steps in a list for a special purpose are not quoted as rules."""
    given = instructions_message(
        "## Testing\n\nAlways run the whole suite.\n\nTo add a new builtin with tests:\n",
        "1. Use the maker in the table",
        "2. Never forget the index of it\n",
        "Never skip a failing test.",
    )
    rows = entry_texts(
        digest_of_lines(where, [given, message_line("user", "go on")]), "instructions"
    )
    assert rows[1:] == ["Always run the whole suite.", "Never skip a failing test."]


def test_the_headings_of_instructions_without_rules_are_listed(where: Where) -> None:
    """If instructions contain no rules, the digest lists their headings."""
    given = instructions_message("# Guide\n\n## Status of runs\n\nThe script prints it.\n")
    rows = entry_texts(
        digest_of_lines(where, [given, message_line("user", "go on")]), "instructions"
    )
    assert rows == ["AGENTS.md of /p", "its headings: Guide; Status of runs"]


def test_a_list_of_skills_is_not_an_instruction(where: Where) -> None:
    """Codex's list of skills is not listed as instructions."""
    given = instructions_message(
        "\n## Skills\nA skill is a set of local instructions. Always open one."
    )
    assert (
        entry_texts(digest_of_lines(where, [given, message_line("user", "go on")]), "instructions")
        == []
    )


def test_long_instructions_are_shortened_to_relevant_rules(where: Where) -> None:
    """The digest of long instructions quotes general rules and rules on the changed files and the request.

    Each rule follows its heading. Headings without a quoted rule are listed.
    """
    registry_rules = [f"- Never add a plugin of kind {number}." for number in range(12)]
    patch = "*** Begin Patch\n*** Add File: /p/docs/a.md\n+x\n*** End Patch"
    lines = [
        instructions_message(
            "# Guide\n\n## Registry: READ FIRST\n\nPull requests must name the plugin.",
            *registry_rules,
            "## Commits\n\nAlways sign a commit, as in:\n\n```sh\n# sign\ngit commit -s\n```\n",
            "### Titles of PRs\n\nA title must be short.",
            "## Deprecation Policy\n\n1. **First**: mark it as deprecated in the docs",
            "## Pages\n\nAlways link a page of `docs/` in the index.",
            "## Code Architecture\n\n- `src/a.py` - must be read first of all",
        ),
        message_line("user", "deprecate the old option"),
        item_line("custom_tool_call", name="apply_patch", input=patch, call_id="1"),
        output_line("1", "Success. Updated the following files:\nA /p/docs/a.md"),
    ]
    headings = [
        "Guide",
        "Registry: READ FIRST",
        "Commits",
        "Titles of PRs",
        "Deprecation Policy",
        "Pages",
        "Code Architecture",
    ]
    made = digest_of_lines(where, lines)
    assert entry_texts(made, "instructions") == [
        "AGENTS.md of /p",
        f"its headings: {'; '.join(headings)}",
        "Commits: Always sign a commit, as in: [2 lines of code]",
        "Titles of PRs: A title must be short.",
        "Deprecation Policy: **First**: mark it as deprecated in the docs",
        "Pages: Always link a page of `docs/` in the index.",
    ]


@pytest.mark.parametrize(
    ("changed_file", "is_elsewhere"),
    [("/q/a.py", True), ("/tmp/a.py", False), ("/w/tree/p/a.py", False)],
)
def test_only_user_preferences_apply_to_a_project_without_work(
    where: Where, changed_file: str, *, is_elsewhere: bool
) -> None:
    """If the session changed files only in another project, only the user's own preferences are quoted."""
    patch = f"*** Begin Patch\n*** Add File: {changed_file}\n+x\n*** End Patch"
    body = "# Global preferences\n\nNever open a draft request.\n\n# Guide\n\nAlways run the tests.\n\n- `make test`"
    lines = [
        instructions_message(body),
        message_line("user", "do it over there"),
        item_line("custom_tool_call", name="apply_patch", input=patch, call_id="1"),
        output_line("1", f"Success. Updated the following files:\nA {changed_file}"),
    ]
    made = digest_of_lines(where, lines)
    note = entry_notes(made, "instructions")["AGENTS.md of /p"]
    assert note.startswith("the session changed no file of this project") is is_elsewhere
    project_rules = [] if is_elsewhere else ["Guide: Always run the tests.", "`make test`"]
    assert entry_texts(made, "instructions")[1:] == ["Never open a draft request.", *project_rules]


@pytest.mark.parametrize("has_notice", [True, False])
def test_an_interrupted_turn_is_mentioned_once(where: Where, *, has_notice: bool) -> None:
    """An interrupted turn is mentioned once, even if Codex also told the model about the interruption."""
    note = message_line(
        "user", "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>"
    )
    event = rollout_line("event_msg", {"type": "turn_aborted", "reason": "interrupted"})
    lines = [
        call_line("1", "make test"),
        output_line("1", "aborted"),
        *([note] if has_notice else []),
        event,
    ]
    found = [
        text for text in entry_texts(digest_of_lines(where, lines), "now") if "interrupted" in text
    ]
    assert found == ["the user interrupted the work on the last request"]


def test_a_file_in_a_deleted_folder_is_not_listed(where: Where) -> None:
    """A file is not listed as uncommitted after a command showed that its folder is gone."""
    patch = "*** Begin Patch\n*** Add File: /p/notes/a.md\n+x\n*** End Patch"
    lines = [
        item_line("custom_tool_call", name="apply_patch", input=patch, call_id="1"),
        output_line("1", "Success. Updated the following files:\nA /p/notes/a.md"),
        call_line("2", "git status --short"),
        output_line("2", "Process exited with code 0\nOutput:\n?? notes/"),
        message_line("user", "I deleted the folder"),
        call_line("3", "ls /p/notes"),
        output_line(
            "3", "Process exited with code 1\nOutput:\nls: /p/notes: No such file or directory"
        ),
    ]
    made = digest_of_lines(where, lines)
    assert not any("not committed" in note for note in entry_notes(made, "changed").values())
    assert not any("a.md" in text for text in entry_texts(made, "now"))


def test_an_interrupted_watch_is_not_a_failure(where: Where) -> None:
    """A watch command that was interrupted is listed neither as an error nor as a failure."""
    lines = [
        call_line("1", "gh pr checks 7 --watch"),
        output_line("1", "Process running with session ID 5\nOutput:\npending"),
        poll_line("2", 5),
        output_line("2", "Process exited with code 130\nOutput:\n"),
    ]
    made = digest_of_lines(where, lines)
    assert entry_texts(made, "errors") == entry_texts(made, "failures") == []


def test_a_check_in_a_shell_script_closes_a_failure(where: Where) -> None:
    """If a check passed within ``sh -c``, the earlier failure of the same check is closed."""
    lines = [
        call_line("1", 'PATH="$PWD/x:$PATH" ./target/hk test --step a'),
        output_line("1", "Process exited with code 1\nOutput:\nError: 3 tests failed"),
        call_line("2", "mise exec -- sh -c 'PATH=/y exec ./target/hk test --step a'"),
        output_line("2", "Process exited with code 0\nOutput:\nok"),
    ]
    assert entry_texts(digest_of_lines(where, lines), "errors") == []


def test_a_cut_result_has_its_exit_status(where: Where) -> None:
    """The exit status is found in a JSON result that was cut off."""
    code = 'text(JSON.stringify(await tools.exec_command({cmd:"make test"})));'
    cut = 'Warning: truncated output (original token count: 9)\n\n{"chunk_id":"1","exit_code":1,"output":"a'
    assert entry_texts(digest_of_lines(where, script_lines("1", code, cut)), "commands") == []


@pytest.mark.parametrize(("typed_characters", "failure_count"), [('"\\u0003"', 0), ('""', 1)])
def test_a_command_stopped_with_ctrl_c_is_not_a_failure(
    where: Where, typed_characters: str, failure_count: int
) -> None:
    """A command that was stopped with Ctrl+C is not a failure."""
    stop = f"const r = await tools.write_stdin({{session_id:77,chars:{typed_characters}}}); text(r.output);"
    lines = [
        *lines_of_polling_scripts("make test", "ok 1 adds\n\nSESSION_ID=77"),
        *script_lines("s9", stop, "# Received SIGINT\n[test] ERROR task failed\n"),
    ]
    assert len(entry_texts(digest_of_lines(where, lines), "errors")) == failure_count


def test_a_missing_program_is_replaced_by_a_later_run_with_another_path(where: Where) -> None:
    """If a program was missing and a later run uses another path, the entry shows the later result.

    In this test, the later run failed for a different reason.
    """
    code = "const r = await tools.exec_command({cmd:%s}); text(r.output);"
    lines = [
        *script_lines("1", code % '"tool check --all"', "zsh:1: command not found: tool"),
        *script_lines("2", code % '"./bin/tool check --all"', "linter: command not found"),
    ]
    made = digest_of_lines(where, lines)
    (failure,) = entry_texts(made, "errors")
    assert failure.startswith("`./bin/tool check --all` ")
    assert entry_texts(made, "failures")[-1].endswith(
        "; then `./bin/tool check --all` failed in another way"
    )


def test_the_row_of_a_failed_request_begins_with_its_program(where: Where) -> None:
    """The entry of a failed request begins with the request's program, not with the preceding command."""
    code = "const r = await tools.exec_command({cmd:%s}); text(r.output);"
    query = "gh api graphql -f query='mutation { close(name: %s) { id } }' --jq '.data.close.id'"
    read_before = f"sed -n '1,9p' /{'x' * 150}/SKILL.md\n"
    lines = [
        *script_lines("1", code % json.dumps(read_before + query % '""'), "gh: Expected NAME"),
        *script_lines("2", code % json.dumps(query % '"a"'), '{"id": 1}'),
    ]
    (failure,) = entry_texts(digest_of_lines(where, lines), "failures")
    assert failure.startswith("`… gh api graphql ")
    assert "; then `gh api graphql" in failure


def test_a_description_is_not_a_rule(where: Where) -> None:
    """A description of an option or a program is not quoted as a rule."""
    given = instructions_message(
        "- `as_file = true`: write the title to a file instead of a variable",
        "- **Pull requests:** Uses a good title instead of a number",
        "The parser reads a file once.",
    )
    made = digest_of_lines(
        where, [given, message_line("user", "open a pull request with good titles")]
    )
    assert entry_texts(made, "instructions") == ["AGENTS.md of /p"]


@pytest.mark.parametrize("rule", ["Use uv to run the tests.", "We prefer short names for values."])
def test_a_preference_is_quoted_as_a_rule(where: Where, rule: str) -> None:
    """An imperative or a preference in the instructions is quoted as a rule."""
    made = digest_of_lines(where, [instructions_message(rule), message_line("user", "go on")])
    assert entry_texts(made, "instructions") == ["AGENTS.md of /p", rule]


@pytest.mark.parametrize(
    ("command", "printed", "note"),
    [
        (
            "make test -- one",
            "Process exited with code 1\nOutput:\nno rule",
            "its last run with more arguments failed, :4",
        ),
        ("make test", "Process exited with code 130\nOutput:\n", "its last run was stopped, :4"),
        ("make test", "Process exited with code 0\nOutput:\nok", ""),
        (
            "make test | tail -9",
            "Process exited with code 0\nOutput:\nzsh:1: command not found: runner",
            "its last run, :4, printed: zsh:1: command not found: runner",
        ),
        ("make test && pytest", "Process exited with code 1\nOutput:\nno rule", ""),
    ],
)
def test_a_failed_project_command_is_marked(
    where: Where, command: str, printed: str, note: str
) -> None:
    """A command in the instructions has a note if its last run failed or was stopped.

    The note is omitted if a different command in the same chain may have failed.
    """
    given = instructions_message("```bash\nmake test # all tests\n```\n\n- `make lint` or `make l`")
    made = digest_of_lines(
        where,
        [
            given,
            message_line("user", "test it"),
            call_line("1", command),
            output_line("1", printed),
        ],
    )
    assert entry_notes(made, "instructions") == {
        "AGENTS.md of /p": "the client loads the file again",
        "make test # all tests": note,
        "`make lint` or `make l`": "",
    }


@pytest.mark.parametrize("prefix", ["", "# Files mentioned by the user:\n\n## a.txt: /p/a.txt\n\n"])
def test_a_summary_does_not_repeat_the_conversation(where: Where, prefix: str) -> None:
    """A summary after a compaction is shown without the user's messages. An encrypted summary is omitted."""
    heading = "## My request for Codex:\n" if prefix else ""
    request = message_line("user", f"{prefix}{heading}sort it")
    hidden = item_line("compaction", encrypted_content="xxx")
    lines = [request, message_line("assistant", "Sorted."), compaction_line([request, hidden], 1)]
    assert message_texts(digest_of_lines(where, lines), MessageKind.SUMMARY) == []
    summary = message_line("user", f"{SUMMARY_PREFIX}: half of it is sorted")
    lines[-1] = compaction_line([request, summary], 1)
    (text,) = message_texts(digest_of_lines(where, lines), MessageKind.SUMMARY)
    assert "half of it is sorted" in text
    assert "sort it" not in text
