"""Tests of the commands in a digest: successful commands, failed commands, and open errors."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest.opening import format_whole_digest
from tests.builders import CWD, SESSION, ConfigHome
from tests.reading.digest.talk import (
    REJECTION_TEXT,
    Talk,
    entry_line_numbers,
    entry_notes,
    entry_texts,
    request_texts,
)


def test_a_command_that_failed_and_then_succeeded_is_listed_once(config_home: ConfigHome) -> None:
    """A command that failed and then succeeded is listed once, with the number of its runs.

    The entry refers to the last run.
    """
    talk = (
        Talk()
        .prompt("go")
        .runs_and_fails("go test ./...")
        .runs("cd /home/user/proj && go test ./... 2>&1 | tail -5")
    )
    digest = talk.digest(config_home)
    assert entry_notes(digest, "commands") == {"go test ./...": "2 runs"}
    assert entry_line_numbers(digest, "commands") == {"go test ./...": 3}
    assert entry_texts(digest, "failures") == []
    assert entry_texts(digest, "errors") == []


@pytest.mark.parametrize(
    "command",
    [
        "gh issue view 506 --repo o/r --comments 2>/dev/null | head -100",
        "rtk proxy gh issue view 506 --json number,title | jq .title",
        "gh issue view 12 --json body",
        "defuddle parse 'https://x.example/Checker.kt' --md 2>/dev/null | grep -n Java",
        "curl -s https://x.example/api/v1 | head -20",
    ],
)
def test_a_search_without_results_is_not_listed(config_home: ConfigHome, command: str) -> None:
    """A search that printed nothing is not listed, but a search that printed something is."""
    empty = Talk().prompt("go").runs(command, "").digest(config_home)
    assert entry_texts(empty, "others") == []
    answered = Talk().prompt("go").runs(command, "title: Scout").digest(config_home)
    (row,) = entry_texts(answered, "others")
    assert command.startswith(row)


def test_a_gh_command_that_printed_an_empty_list_is_not_listed(config_home: ConfigHome) -> None:
    """A ``gh`` command that printed the empty list ``[]`` is not listed."""
    talk = Talk().prompt("go").runs("gh pr list --json number", "[]")
    assert entry_texts(talk.runs("gh pr view 7", "Fix it").digest(config_home), "others") == [
        "gh pr view 7"
    ]


def test_a_request_to_a_local_server_is_listed(config_home: ConfigHome) -> None:
    """A ``curl`` request to localhost is listed, because it shows whether the started server works."""
    command = "curl -s http://localhost:3000/health"
    digest = Talk().prompt("go").runs(command, "up").digest(config_home)
    assert entry_texts(digest, "others") == [command]


def test_a_mise_error_before_a_pipe_is_a_failure(config_home: ConfigHome) -> None:
    """An error that mise prints marks the command as failed, although ``tail`` sets the exit status to 0."""
    talk = Talk().prompt("go").runs("mise run test 2>&1 | tail -5", "mise ERROR no tasks defined")
    assert entry_texts(talk.digest(config_home), "commands") == []


def test_a_gh_error_before_a_pipe_is_a_failure(config_home: ConfigHome) -> None:
    """An error that ``gh`` prints marks the command as failed, although ``head`` sets the status to 0."""
    error = "none of the git remotes configured for this repository point to a known GitHub host"
    talk = Talk().prompt("go").runs("gh workflow run ci.yml --json x 2>&1 | head -5", error)
    digest = talk.runs("gh workflow enable ci.yml", "ok").digest(config_home)
    assert entry_texts(digest, "others") == ["gh workflow enable ci.yml"]


def test_a_command_whose_last_run_failed_is_marked(config_home: ConfigHome) -> None:
    """The note on a command says that its last run failed, and the failure is listed as an open error."""
    digest = (
        Talk()
        .prompt("go")
        .runs("make x")
        .runs_and_fails("make x", "cc: fatal error: no y", 2)
        .digest(config_home)
    )
    assert entry_notes(digest, "commands") == {"make x": "2 runs, its last run, :3, failed, exit 2"}
    assert entry_texts(digest, "errors") == ["`make x` exit 2: cc: fatal error: no y"]


def test_an_open_error_of_a_chain_names_the_part_that_passed_later(config_home: ConfigHome) -> None:
    """If one part of a failed command chain passes later, the open error says which part passed."""
    talk = (
        Talk().prompt("go").runs_and_fails("cargo clippy -q && cargo test argv", "error: dead code")
    )
    row = "`cargo clippy -q && cargo test argv` exit 1: error: dead code"
    assert entry_notes(talk.digest(config_home), "errors") == {row: ""}
    talk.runs("cargo fmt && cargo test argv", "test result: ok. 3 passed; 0 failed")
    passed_note = f"the part `cargo test argv` passed later, at :{talk.last_line_number}"
    assert entry_notes(talk.digest(config_home), "errors") == {row: passed_note}


def test_the_note_on_a_check_that_passed_names_the_files_edited_later(
    config_home: ConfigHome,
) -> None:
    """The note on a check names the files that were edited after the check passed, each file once.

    Documents, temporary files, and the client's own files are not named. A new run of the check
    removes the note.
    """
    talk = Talk().prompt("go").runs("pytest -q").runs("npm start").edits(f"{CWD}/README.md")
    talk.edits("/tmp/x.py").edits("/home/me/.claude/plans/x.py")
    checked = {"pytest -q": "", "npm start": ""}
    assert entry_notes(talk.digest(config_home), "commands") == checked
    talk.edits(f"{CWD}/a.py").edits(f"{CWD}/a.py").runs("sed -i s/a/b/ b.py")
    checked["pytest -q"] = "edited since: a.py, b.py"
    assert entry_notes(talk.digest(config_home), "commands") == checked
    checked["pytest -q"] = "2 runs"
    assert entry_notes(talk.runs("pytest -q").digest(config_home), "commands") == checked


def test_work_in_another_repository_does_not_change_a_check(
    config_home: ConfigHome,
) -> None:
    """Edits and passed checks in one repository do not change the note on a check in another repository.

    A file outside both repositories is named in the notes on both checks.
    """
    other = "/srv/other"
    talk = Talk().prompt("go").runs("git status", "On branch main\n", cwd=other)
    talk.runs("make check", cwd=other).runs("pytest -q").edits(f"{CWD}/a.py")
    talk.edits("/srv/loose.py").runs("make check && git commit -qam done")
    checked = entry_notes(talk.digest(config_home), "commands")
    assert checked["make check"] == f"in {other}, edited since: loose.py"
    assert checked["pytest -q"] == "edited since: a.py, loose.py"
    checked = entry_notes(talk.edits(f"{other}/b.py").digest(config_home), "commands")
    assert checked["make check"] == f"in {other}, edited since: loose.py, b.py"
    assert checked["pytest -q"] == "edited since: a.py, loose.py"


def test_a_check_in_a_chain_has_the_result_of_the_chain(config_home: ConfigHome) -> None:
    """A check that passes as part of a chain, such as ``pytest && git commit``, counts as passed.

    The note on the check refers to the chain's record, because the client records no exit status
    for the parts of a chain.
    """
    talk = Talk().prompt("go").runs("pytest -q").edits(f"{CWD}/a.py")
    talk.runs("pytest -q && git commit -qam done", "ok")
    chain_note = f"2 runs, passed in another command, :{talk.last_line_number}"
    assert entry_notes(talk.digest(config_home), "commands")["pytest -q"] == chain_note
    talk.edits(f"{CWD}/b.py")
    edited_note = f"{chain_note}, edited since: b.py"
    assert entry_notes(talk.digest(config_home), "commands")["pytest -q"] == edited_note


def test_the_note_on_a_command_chain_names_the_last_pass_of_its_check(
    config_home: ConfigHome,
) -> None:
    """The note on a chain of a formatter and a check says that the check passed later in another chain.

    The note counts only the runs of the chain itself. A later run of the formatter without the
    check does not change the note.
    """
    joined = "cargo fmt && pytest -q"
    talk = Talk().prompt("go").runs("cargo fmt").runs(joined, "ok").runs(joined, "ok")
    talk.runs("pytest -q && git diff", "1 passed")
    note = f"2 runs, passed in another command, :{talk.last_line_number}"
    talk.runs("cargo fmt && git diff").runs("cargo fmt && git log")
    assert entry_notes(talk.digest(config_home), "commands")[joined] == note


def test_a_command_chain_is_replaced_by_its_parts(config_home: ConfigHome) -> None:
    """A command chain is not listed if each of its parts is listed on its own."""
    joined = "npm run fmt && pytest tests/a"
    talk = Talk().prompt("go").runs(joined, "ok").runs("npm run fmt").runs("npm run fmt")
    for name in "abcd" * 2:
        talk.runs(f"pytest tests/{name}")
    checked = entry_notes(talk.digest(config_home), "commands")
    assert checked["pytest tests/a"] == "3 runs"
    assert joined not in checked


@pytest.mark.parametrize(
    ("selected_command", "wider_command"),
    [
        ("go test ./pkg/a -run TestOne -v", "go test ./..."),
        ("cd pkg && go test -run TestOne", "go test -race ./pkg/..."),
        ("pytest tests/test_a.py::test_one -q", "pytest"),
        ("pytest -q -k one", "pytest tests -q"),
        ("go test ./a -run TestOneMore", "go test ./a -run TestOne"),
        ("npx vitest run src/a -t one", "npx vitest run src"),
    ],
)
def test_a_run_of_selected_tests_is_replaced_by_a_wider_check(
    config_home: ConfigHome, selected_command: str, wider_command: str
) -> None:
    """A run of selected tests is not listed if a wider check passes after later edits.

    The run is still listed if no edit followed, if the wider check failed, or if the selected tests
    ran more than once.
    """
    talk = Talk().prompt("go").runs(wider_command).runs(selected_command)
    assert set(entry_texts(talk.digest(config_home), "commands")) == {
        selected_command,
        wider_command,
    }
    failed = Talk().prompt("go").runs(selected_command).runs_and_fails(wider_command)
    assert entry_texts(failed.digest(config_home), "commands") == [selected_command]
    talk.edits(f"{CWD}/a.py").runs(wider_command)
    # Tests named "one" may also exist outside the folder ``tests``.
    kept = wider_command == "pytest tests -q"
    assert (selected_command in entry_texts(talk.digest(config_home), "commands")) is kept
    inspected = (
        Talk()
        .prompt("go")
        .runs(selected_command)
        .edits(f"{CWD}/a.py")
        .runs(f'echo "=== all ==="; {wider_command}')
    )
    assert (selected_command in entry_texts(inspected.digest(config_home), "commands")) is kept
    again = (
        Talk()
        .prompt("go")
        .runs(selected_command)
        .runs(selected_command)
        .edits(f"{CWD}/a.py")
        .runs(wider_command)
    )
    assert selected_command in entry_texts(again.digest(config_home), "commands")


def test_a_command_that_reads_a_temporary_file_is_not_listed(
    config_home: ConfigHome,
) -> None:
    """A command that reads a temporary file is not listed, because the file may no longer exist.

    A build that writes a temporary file is listed among the checks.
    """
    talk = Talk().prompt("go").runs("go tool trace -pprof=net /tmp/trace.out", "ok")
    digest = talk.runs("go doc net", "package net").runs("go build -o /tmp/x .").digest(config_home)
    assert entry_texts(digest, "others") == ["go doc net"]
    assert entry_texts(digest, "commands") == ["go build -o /tmp/x ."]


def test_a_command_that_only_inspects_is_not_listed(config_home: ConfigHome) -> None:
    """A command that only inspects something is not listed as a check to run again.

    Examples are a single run of selected tests whose output is piped to ``grep``, a command that
    prints a program's help, and ``git init``.
    """
    talk = Talk().prompt("go").runs("go test ./a -run One 2>&1 | grep -A 30 'Session B'", "x")
    talk.runs("container", "OVERVIEW: A platform\n\nUSAGE: container [--debug] <subcommand>")
    talk.runs("make", "Usage: make [x]").runs("git init", "Initialized").runs("go vet ./...")
    digest = talk.digest(config_home)
    assert entry_texts(digest, "commands") == ["go vet ./..."]
    assert entry_texts(digest, "others") == []
    talk.runs("go test ./a | grep FAIL", "x").edits(f"{CWD}/a.go").runs("go test ./...")
    assert entry_texts(talk.digest(config_home), "commands") == ["go test ./...", "go vet ./..."]
    talk.runs_and_fails(
        "pytest --x", "usage: pytest [options]\nerror: unrecognized arguments: --x", 4
    )
    assert len(entry_texts(talk.digest(config_home), "errors")) == 1
    talk.runs("go test ./a -run One 2>&1 | grep -A 30 'Session B'", "x")
    assert len(entry_texts(talk.digest(config_home), "commands")) == 3


def test_a_wider_check_that_passed_after_the_edits_is_named(config_home: ConfigHome) -> None:
    """The note on a check names a later run of a wider check that passed, such as a check of all packages.

    If a task runner printed its command, that command is compared with the check. Runs of other
    programs, with other options, or in other folders are not named.
    """
    talk = Talk().prompt("go").runs("go build ./cmd/a").edits(f"{CWD}/cmd/a/main.go")
    talk.runs("go vet ./lib/...").runs("golangci-lint run ./...").runs("go test ./cmd/a -run One")
    edited = "edited since: main.go"
    assert entry_notes(talk.digest(config_home), "commands")["go build ./cmd/a"] == edited
    talk.runs("mise run test 2>&1 | tail -9", "[test] $ go test -race ./...\nok  cmd/a 0.1s")
    passed = f"a later check that covers it passed, :{talk.last_line_number}"
    assert entry_notes(talk.digest(config_home), "commands")["go build ./cmd/a"] == passed
    cut = Talk().prompt("go").runs("go test ./a -run One").runs("go test ./a -run One")
    cut.edits(f"{CWD}/a.go").runs("mise run test -- -run Two", "[test] $ go test ./a -ru…\nok")
    assert (
        "edited since: a.go"
        in entry_notes(cut.digest(config_home), "commands")["go test ./a -run One"]
    )
    talk.edits(f"{CWD}/cmd/b.go")
    row = f"{passed}, edited since: b.go"
    assert entry_notes(talk.digest(config_home), "commands")["go build ./cmd/a"] == row


def test_a_check_with_filtered_output_is_still_a_check(
    config_home: ConfigHome,
) -> None:
    """A check whose output is piped to ``grep -E "(ok|FAIL)"`` counts as a run of that check.

    The run failed if the output contains a failure. Otherwise it passed.
    """
    talk = Talk().prompt("go").runs("go build ./a").edits(f"{CWD}/a.go")
    talk.runs("mise run test 2>&1 | tail -9", "[test] $ go test ./...\nok  a").edits(f"{CWD}/a.go")
    searched = 'mise run test 2>&1 | grep -E "(ok|FAIL)" | tail -20'
    failed = entry_notes(talk.runs(searched, "1 failed, 3 passed").digest(config_home), "commands")
    assert failed["mise run test"].startswith("2 runs, its last run, :")
    rows = entry_notes(talk.runs(searched, "ok  a").digest(config_home), "commands")
    passed = f"a later check that covers it passed, :{talk.last_line_number}"
    assert rows == {"mise run test": "3 runs", "go build ./a": passed}


def test_a_failed_trial_in_a_temporary_folder_is_not_an_open_error(config_home: ConfigHome) -> None:
    """A command that failed in a temporary folder is not listed as an open error.

    A failed check that ran elsewhere is listed, even if one of its options is a temporary path.
    """
    talk = (
        Talk()
        .prompt("go")
        .runs_and_fails("cd /tmp/x && curl -sL https://x.example/a.tgz | tar -xz", "no")
    )
    talk.runs_and_fails("cd /tmp/x && go build ./...").runs_and_fails("go test -o /tmp/x ./...")
    assert entry_texts(talk.digest(config_home), "errors") == [
        "`go test -o /tmp/x ./...` exit 1: boom"
    ]


def test_the_note_on_a_check_that_failed_names_the_files_edited_later(
    config_home: ConfigHome,
) -> None:
    """The note on a failed check names the files that were edited later and may have fixed the error.

    The note on a failed linter also names edited documents.
    """
    talk = Talk().prompt("go").runs_and_fails("npm run lint", "error: no x")
    row = "`npm run lint` exit 1: error: no x"
    assert entry_notes(talk.digest(config_home), "errors") == {row: ""}
    talk.edits(f"{CWD}/README.md")
    note = "edited since: README.md, not rerun"
    assert entry_notes(talk.digest(config_home), "errors") == {row: note}
    talk.runs_and_fails("npm run lint", "error: no x")
    assert entry_notes(talk.digest(config_home), "errors") == {row: ""}
    talk.runs("npm run lint").runs_and_fails("npm run lint", "error: no x").edits(
        f"{CWD}/README.md"
    )
    last = f"4 runs, its last run, :{talk.last_line_number - 3}, failed, exit 1, {note}"
    assert entry_notes(talk.digest(config_home), "commands") == {"npm run lint": last}


def test_plain_command_lines_are_joined(config_home: ConfigHome) -> None:
    """Several command lines are joined with semicolons. Lines with quotes are printed as ``eval $'...'``."""
    talk = Talk().prompt("go").runs("cargo fmt --check\ncargo test step::batching")
    talk.runs("make 'a\nb'")
    assert entry_texts(talk.digest(config_home), "commands") == [
        r"eval $'make \'a\nb\''",
        "cargo fmt --check; cargo test step::batching",
    ]


def test_an_escaped_line_break_does_not_hide_a_secret(config_home: ConfigHome) -> None:
    """A secret after a line break is removed from a command that is printed in the form ``eval $'...'``."""
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    digest = Talk().prompt("go").runs(f"make x\n{secret}").digest(config_home)
    (shown,) = entry_texts(digest, "commands")
    assert shown.startswith("eval $'make x\\n")
    assert secret[:8] not in shown


@pytest.mark.parametrize(
    "output",
    [
        "--- FAIL: TestX (0.1s)\nFAIL", "ok\nerror: no such thing", "Traceback (most recent call last):\n  x",
        "sh: gox: command not found", "npm ERR! missing", "make: *** [all] Error 2", "test result: FAILED. 1 passed",
        "=== 2 failed, 3 passed in 0.1s ===", "Tests:       1 failed, 2 passed", "not ok 3 - adds", "exit status 2",
        "fatal: not a repository", "Found 3 errors in 1 file",
    ],
)  # fmt: skip
def test_a_pipe_does_not_hide_a_failure(config_home: ConfigHome, output: str) -> None:
    """A command whose output contains an error counts as failed, although ``tail`` sets the status to 0."""
    digest = Talk().prompt("go").runs("make test | tail -5", output).digest(config_home)
    assert entry_texts(digest, "commands") == []
    (failed,) = entry_texts(digest, "failures")
    assert failed.startswith("`make test` exit 0, but: ")
    assert entry_texts(digest, "errors") == [failed]


def test_unittest_is_a_check(config_home: ConfigHome) -> None:
    """``python3 -m unittest`` is listed as a check."""
    digest = Talk().prompt("go").runs("python3 -m unittest", "OK").digest(config_home)
    assert entry_texts(digest, "commands") == ["python3 -m unittest"]


@pytest.mark.parametrize(
    "output",
    [
        "5 passed, 0 failed",
        "ok  pkg 0.1s",
        "no errors",
        "0 errors, 0 warnings",
        "handles an error well",
    ],
)
def test_an_output_that_mentions_errors_is_not_a_failure(
    config_home: ConfigHome, output: str
) -> None:
    """An output such as "no errors" or "0 failed" doesn't mark a command as failed."""
    digest = Talk().prompt("go").runs("make test", output).digest(config_home)
    assert entry_notes(digest, "commands") == {"make test": ""}


def test_a_clean_run_is_preferred_to_a_later_run_with_errors(
    config_home: ConfigHome,
) -> None:
    """The entry of a command refers to its last run that printed no error.

    If a later run printed an error, the note on the entry quotes the error.
    """
    talk = Talk().prompt("go").runs("make test | tail").runs("make test | tail -3", "FAIL: x")
    digest = talk.digest(config_home)
    assert entry_line_numbers(digest, "commands") == {"make test": 1}
    assert entry_notes(digest, "commands") == {
        "make test": "2 runs, its last run, :3, printed: FAIL: x"
    }


@pytest.mark.parametrize(
    ("answer", "extra"),
    [
        (f"{REJECTION_TEXT} STOP what you are doing.", {"error": True}),
        ("The user doesn't want to take this action right now. STOP", {"error": True}),
        ("Permission to use Bash with command make has been denied.", {"error": True}),
        (
            "Use the Read tool to read file contents",
            {"error": True, "toolDenialKind": "permission-rule"},
        ),
        (
            "Permission for this action was denied by the Claude Code auto mode classifier. Reason: x.",
            {"error": True},
        ),
        ("PreToolUse:Bash hook error: [x]: no", {"error": True}),
        ("Bash operation blocked by hook:\n- no", {"error": True}),
        ("<tool_use_error>InputValidationError: x</tool_use_error>", {"error": True}),
        ("[Request interrupted by user for tool use]", {"error": True}),
        ("half", {"toolUseResult": {"interrupted": True}}),
        ("half", {"error": True}),
        (None, {}),
    ],
)
def test_an_unfinished_command_did_not_succeed(
    config_home: ConfigHome, answer: str | None, extra: dict[str, object]
) -> None:
    """A command is not listed as successful if it was refused, interrupted, malformed or never answered."""
    digest = (
        Talk()
        .prompt("go")
        .calls("Bash", {"command": "make > out.txt"}, answer, **extra)
        .digest(config_home)
    )
    assert entry_texts(digest, "commands") == []
    assert all(note == "its command failed" for note in entry_notes(digest, "changed").values())


def test_an_unrecorded_exit_status_is_not_invented(config_home: ConfigHome) -> None:
    """A failed command without a recorded exit status is listed as failed, without a status.

    Clients before 2.1 record only the output of a failed command.
    """
    digest = Talk().prompt("go").runs("make", "it broke", error=True).digest(config_home)
    assert entry_texts(digest, "failures") == ["`make` failed: it broke"]


def test_a_background_command_runs_until_its_notification(config_home: ConfigHome) -> None:
    """A background command without a notification is listed as still running, not as successful."""
    started = "Command running in background with ID: b1. Output is being written to: /tmp/x"
    talk = Talk().prompt("go").runs("npm run dev", started).runs("npm run build")
    digest = talk.digest(config_home)
    assert entry_notes(digest, "commands") == {"npm run build": ""}
    assert "a command was still running in the background: npm run dev" in entry_texts(
        digest, "pending"
    )


@pytest.mark.parametrize(
    ("status", "summary", "note"),
    [
        ("completed", "(exit code 0)", "in the background"),
        ("completed", "(exit code 1)", None),
        ("killed", "x", None),
    ],
)
def test_a_notification_ends_a_background_command(
    config_home: ConfigHome, status: str, summary: str, note: str | None
) -> None:
    """A notification from the client ends a background command. A successful command is then listed.

    The notification is not shown as a prompt of the user.
    """
    talk = Talk().prompt("go").runs("make", "started", toolUseResult={"backgroundTaskId": "b7"})
    told = f"<task-notification>\n<task-id>b7</task-id>\n<status>{status}</status>\n<summary>{summary}</summary>"
    digest = talk.prompt(f"{told}\n</task-notification>").digest(config_home)
    assert entry_notes(digest, "commands") == ({} if note is None else {"make": note})
    assert request_texts(digest) == ["go"]
    assert not any("background" in text for text in entry_texts(digest, "now"))


def test_a_failed_command_is_listed_with_its_replacement(config_home: ConfigHome) -> None:
    """A failed command and the command that replaced it share one entry, which refers to the last failure."""
    talk = (
        Talk()
        .prompt("go")
        .runs_and_fails("git push origin x", "no upstream", 1)
        .runs_and_fails("git push origin x", "no upstream", 1)
    )
    digest = talk.runs("git push -u origin x").digest(config_home)
    assert entry_texts(digest, "failures") == [
        "`git push origin x` exit 1: no upstream; then `git push -u origin x` worked"
    ]
    assert entry_line_numbers(digest, "failures") == {entry_texts(digest, "failures")[0]: 3}


def test_a_failed_command_without_a_replacement_is_listed_alone(config_home: ConfigHome) -> None:
    """A failed command without a replacement is listed without the words "then ... worked"."""
    talk = Talk().prompt("go").runs_and_fails("gh pr checks 2 --json x", 'Unknown JSON field: "x"')
    for number in range(4):
        talk.prompt(f"next {number}").says("Done with that one.")
    digest = talk.digest(config_home)
    assert entry_texts(digest, "failures") == [
        '`gh pr checks 2 --json x` exit 1: Unknown JSON field: "x"'
    ]
    assert "commands that never worked, and what worked instead:" in format_whole_digest(digest)


def test_a_check_that_passed_later_is_not_a_failure(config_home: ConfigHome) -> None:
    """A build that failed is not listed as a failure if another form of its command passed later."""
    talk = Talk().prompt("go").runs_and_fails("go build .", "no Go files", 1).runs("go build ./cmd")
    assert entry_texts(talk.digest(config_home), "failures") == []


def test_a_later_run_of_the_program_closes_an_error(config_home: ConfigHome) -> None:
    """An error of ``pytest tests/a.py`` is closed when ``pytest`` passes later with other arguments."""
    talk = Talk().prompt("go").runs_and_fails("pytest tests/a.py").runs("pytest -q")
    assert entry_texts(talk.digest(config_home), "errors") == []


def test_an_old_error_is_not_reported_as_open(config_home: ConfigHome) -> None:
    """After four more prompts, a failure is still listed as a failure, but not as an open error."""
    talk = Talk().prompt("go").runs_and_fails("make x")
    for number in range(4):
        talk.prompt(f"next {number}").says("Done with that one.")
    digest = talk.digest(config_home)
    assert entry_texts(digest, "errors") == []
    assert len(digest.section_entries("failures")) == 1


def test_a_very_long_number_is_not_an_exit_status(config_home: ConfigHome) -> None:
    """A status of 10,000 digits, which Python refuses to parse, is ignored. The command counts as failed."""
    digest = (
        Talk()
        .prompt("go")
        .runs("make", f"Exit code {'9' * 10_000}", error=True)
        .digest(config_home)
    )
    assert entry_texts(digest, "failures")[0].startswith("`make` failed: ")


def test_a_placeholder_is_neither_a_command_nor_an_output(config_home: ConfigHome) -> None:
    """Placeholders in a trimmed session are listed neither as commands nor as outputs or messages."""
    left = "content was 5,000 characters; original: 1a2b3c4d:7]"
    talk = Talk().prompt("go").runs(f"[Input of Bash tool suppressed - original {left}")
    talk.runs_and_fails("make").runs(
        "go vet", f"[Results from Bash tool suppressed - original {left}"
    )
    talk.says(
        f"[Claude response trimmed - original was 9,000 characters; original: {SESSION[:8]}:9]"
    )
    digest = talk.digest(config_home)
    assert entry_texts(digest, "commands") == ["go vet"]
    assert entry_texts(digest, "last") == []
    assert not any(
        "suppressed" in entry.text for entries in digest.sections.values() for entry in entries
    )


@pytest.mark.parametrize(
    "command",
    [
        ".specify/scripts/bash/check-prerequisites.sh --json",
        "cat > a.py <<'EOF'\nx = 1\nEOF", "git commit -m 'Fix it'", "git add -A && git commit -qm x", "pytest --help",
        "make -h", "python3 -c 'print(1)'", "mkdir -p build", "rm -rf build", "sleep 5", 'gh pr create --title "x"',
        'for f in *.py; do ruff check "$f"; done', "git rebase main",
        "git -C /w/lib add a.py", "git -c core.pager=cat commit -m x",
        "gh pr close 12", "gh run watch 123456789 --exit-status", "gh api repos/o/r/issues -X POST -f title=x",
        "gh api graphql -f query='mutation { x }'", "perl -pi -e 's/a/b/' check.sh", "brew install gnu-tar",
        "read -r KEY; cargo publish --token $KEY", "number=$(gh pr view --json number -q .number) && echo $number",
        "make lint > /tmp/lint-1; diff /tmp/lint-1 /tmp/lint-2",
        "mise which ruff || true", "docker info --format '{{.Version}}'", "docker run --rm image tar --version",
        "mise task info test", "rustc --version && cargo --version", "man tar | col -b",
        "git status --short && git push -u origin fix", "gh pr view 7 --json url && git log -3",
        "gh --version | head -1; gh auth status; git status -sb", "cargo info tar && gh release view v1 && git pull",
        "gh auth status", "gh run view 29452673919 --log-failed",
        "gh api graphql -f query='query { viewer { login } }'",
        "gh api repos/o/r/git/tags/1a0c5beec2fe4e91727549b5d2d0715ed28684bb",
        "python3 /home/user/.codex/plugins/cache/github/inspect_checks.py --pr 7",
    ],
)  # fmt: skip
def test_commands_that_need_no_repetition_are_not_listed(
    config_home: ConfigHome, command: str
) -> None:
    """Commands that nobody needs to repeat, such as commits, help, file moves and probes, are not listed."""
    digest = Talk().prompt("go").runs("make test").runs(command).digest(config_home)
    assert entry_texts(digest, "commands") == ["make test"]
    assert command not in entry_texts(digest, "others")


@pytest.mark.parametrize(
    ("failed", "later_command", "is_open"),
    [
        ("cargo fmt && cargo check && cargo clippy -- -D warnings", "cargo fmt && cargo test && cargo clippy", False),
        ("cargo fmt && cargo check && cargo clippy -- -D warnings", "cargo fmt && cargo test", True),
        ("cargo check", "cargo clippy", False),
        ("go build ./... && golangci-lint run", "go test ./... && golangci-lint run", False),
        ("cargo test", "cargo check", True),
    ],
)  # fmt: skip
def test_a_build_error_is_closed_by_checks_of_the_same_code(
    config_home: ConfigHome, failed: str, later_command: str, is_open: bool
) -> None:
    """If all linters and tests pass later, the error of a failed build or chain is closed.

    A pass of ``cargo clippy`` also closes an error of ``cargo check``, because both compile the
    code.
    """
    talk = (
        Talk()
        .prompt("go")
        .runs_and_fails(failed, "error: docs for function missing")
        .runs(later_command)
    )
    digest = talk.digest(config_home)
    assert bool(entry_texts(digest, "errors")) is is_open
    assert bool(entry_texts(digest, "errors") + entry_texts(digest, "failures")) is is_open


def test_a_successful_gh_query_closes_a_failed_query(
    config_home: ConfigHome,
) -> None:
    """A successful ``gh`` query closes the failure of an earlier ``gh`` query.

    A failed ``gh`` command that changes something stays open.
    """
    query = "gh api graphql -f query='{ viewer { %s } }'"
    talk = (
        Talk().prompt("go").runs_and_fails(query % "id", "gh: Expected NAME").runs(query % "login")
    )
    change = "gh api graphql -f query='mutation { close(name: %s) { id } }'"
    digest = talk.runs_and_fails(change % "a", "gh: no").runs(change % "b").digest(config_home)
    (row,) = entry_texts(digest, "failures")
    assert row.startswith("`gh api graphql -f query='mutation")


def test_a_continued_rebase_is_not_an_open_failure(config_home: ConfigHome) -> None:
    """``git rebase --continue`` closes the failure of a rebase with conflicts."""
    talk = (
        Talk()
        .prompt("go")
        .runs_and_fails("git rebase main", "CONFLICT (content): Merge conflict in a.py")
    )
    assert entry_texts(talk.runs("git rebase --continue").digest(config_home), "errors") == []


def test_a_failed_server_tool_is_an_open_error_until_it_works(config_home: ConfigHome) -> None:
    """The error of an MCP server's tool stays open until a call of the same tool succeeds."""
    talk = (
        Talk().prompt("go").calls("mcp__db__query", {"sql": "x"}, "connection refused", error=True)
    )
    talk.calls("mcp__db__list", {}).runs("make")
    assert entry_texts(talk.digest(config_home), "errors") == ["mcp__db__query: connection refused"]
    assert (
        entry_texts(talk.calls("mcp__db__query", {"sql": "x"}).digest(config_home), "errors") == []
    )


@pytest.mark.parametrize(
    ("removal", "is_listed"),
    [
        ("git worktree remove --force /home/user/wt", False),
        ("git -C /home/user/repo worktree remove /home/user/wt", False),
        ("cd /home/user && rm -rf wt", False),
        ("rm /home/user/wt --recursive", False),
        ("rm -rf /home/user/other", True),
        ('cd "$ROOT" && rm -rf wt', True),
        ("rm /home/user/wt", True),
        ("git worktree repair /home/user/wt", True),
        ("cp -r /home/user/wt /home/user/copy && rm notes.md", True),
    ],
)
def test_a_command_in_a_removed_folder_is_not_listed(
    config_home: ConfigHome, removal: str, is_listed: bool
) -> None:
    """A command is not listed if the folder in which it ran was removed later.

    If a folder with the same name is created again, a later run in it is listed.
    """
    talk = Talk().prompt("go").runs("cd /home/user/wt && make test").runs(removal)
    assert bool(entry_texts(talk.digest(config_home), "commands")) is is_listed
    assert entry_texts(talk.runs("cd /home/user/wt && make test").digest(config_home), "commands")


def test_a_codex_worktree_is_not_a_temporary_folder(config_home: ConfigHome) -> None:
    """Checks that ran in a Codex worktree are listed. Checks in Codex's other folders are not."""
    script = "make test\nmake lint\ngit diff --check"
    codex = "/home/user/.codex"
    talk = Talk().prompt("go").runs(script, "fine", cwd=f"{codex}/plugins/x")
    assert entry_texts(talk.digest(config_home), "commands") == []
    talk.runs(script, "fine", cwd=f"{codex}/worktrees/98e4/proj")
    assert entry_texts(talk.digest(config_home), "commands") == ["make test", "make lint"]


def test_a_failed_removal_keeps_the_commands_of_a_folder(config_home: ConfigHome) -> None:
    """If the removal of a folder fails, the commands that ran in the folder stay listed."""
    talk = Talk().prompt("go").runs("cd /home/user/wt && make test")
    talk.runs_and_fails(
        "git worktree remove /home/user/wt", "fatal: '/home/user/wt' contains modified files"
    )
    assert entry_texts(talk.digest(config_home), "commands") == ["cd /home/user/wt && make test"]


def test_a_command_that_names_a_removed_folder_is_not_listed(config_home: ConfigHome) -> None:
    """A command that names a removed folder, by path or by name, is not listed.

    If a later command names the folder and succeeds, the folder must exist again. Then the earlier
    command is listed.
    """
    named = "openspec validate published-image-set --strict"
    talk = Talk().prompt("go").runs("mkdir -p openspec/changes/published-image-set")
    talk.runs(named, "valid").runs("make lint").runs(
        "openspec check openspec/changes/published-image-set/specs", "ok"
    )
    talk.runs(
        "for c in a b; do\n  mkdir -p $c\ndone\nrm -rf openspec/changes/published-image-set\nls",
        "a b",
    )
    talk.runs("grep -rn published-image-set .", "README.md:1: published-image-set")
    assert entry_texts(talk.digest(config_home), "commands") == ["make lint"]
    talk.runs("openspec new published-image-set", "made")
    assert named in entry_texts(talk.digest(config_home), "others")


def test_a_run_without_tests_is_not_listed(config_home: ConfigHome) -> None:
    """A ``pytest`` command that ran no tests is not listed, whatever its exit status."""
    digest = (
        Talk().prompt("go").runs("pytest -k x", "=== no tests ran in 0.01s ===").digest(config_home)
    )
    assert entry_texts(digest, "commands") == []


def test_commands_named_in_the_last_request_are_first(config_home: ConfigHome) -> None:
    """A command whose words appear in the last request is listed first."""
    talk = Talk().prompt("go").runs("npm test -- pool").runs("make docs").runs("npm run lint")
    talk.prompt("now test the pool")
    assert entry_texts(talk.digest(config_home), "commands")[0] == "npm test -- pool"


@pytest.mark.parametrize(
    "command",
    [
        "git push origin fix", "make test && git push", "pwsh -Command '(Get-Page https://host/spec-driven.md).Content'",
    ],
)  # fmt: skip
def test_pushes_and_reading_commands_are_not_listed_as_checks(
    config_home: ConfigHome, command: str
) -> None:
    """A push or a command that only reads is listed among the other commands, not among the checks.

    This holds even if the last request contains the command's words.
    """
    talk = (
        Talk().prompt("go").runs("make lint").runs(command).prompt("push it, then look at the pr")
    )
    digest = talk.digest(config_home)
    assert entry_texts(digest, "commands") == ["make lint"]
    assert entry_texts(digest, "others") == [command]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("gh pr view --json url", 'no pull requests found for branch "fix"'),
        ("git pull && npm test", "Updating 1..2\nerror: local changes\nAborting"),
    ],
)
def test_a_command_that_found_nothing_is_not_successful(
    config_home: ConfigHome, command: str, output: str
) -> None:
    """A command is not listed as successful if its output says that it found nothing or aborted.

    Such a command can have the exit status 0 if it is followed by a pipe.
    """
    digest = Talk().prompt("go").runs(f"{command} | head -30", output).digest(config_home)
    assert entry_texts(digest, "commands") + entry_texts(digest, "others") == []


def test_an_error_with_a_code_is_a_failure(config_home: ConfigHome) -> None:
    """A compiler error with a code, such as ``error[E0425]``, marks a piped command as failed."""
    printed = "error[E0425]: cannot find value `size` in this scope"
    digest = Talk().prompt("go").runs("cargo build 2>&1 | head -1", printed).digest(config_home)
    (row,) = entry_texts(digest, "errors")
    assert row == f"`cargo build` exit 0, but: {printed}"


def test_a_check_after_several_reads_is_listed_alone(config_home: ConfigHome) -> None:
    """A check that follows several reading commands in a chain is listed without these commands.

    A single reading command before a check is kept.
    """
    talk = Talk().prompt("go").runs("cat .gitignore; find fuzz -type f | head; ls -lh; cargo fmt")
    digest = talk.runs("cat version.txt && make release").digest(config_home)
    assert sorted(entry_texts(digest, "commands")) == [
        "cargo fmt",
        "cat version.txt && make release",
    ]


def test_checks_between_headings_are_listed_alone(config_home: ConfigHome) -> None:
    """Checks between ``echo`` headings are listed one by one, with the folder in which they ran.

    The headings and the filters of the output are left out.
    """
    command = (
        'cd /home/user/other && echo "=== vet ==="; go vet ./parse/ 2>&1 | head -5\n'
        "echo \"=== test ===\"; go test ./parse/ -run 'TestA|TestB' -v; git log --oneline -3"
    )
    digest = Talk().prompt("go").runs(command, "=== vet ===\n=== test ===\nok").digest(config_home)
    assert entry_notes(digest, "commands") == {
        "go vet ./parse/": "in /home/user/other",
        "go test ./parse/ -run 'TestA|TestB' -v": "in /home/user/other",
    }


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ('echo "=== test ==="; go test ./parse/; echo end', "=== test ===\n--- FAIL: TestA\nend"),
        ('echo "=== test ==="; for each in a b; do go test ./parse/; done', "ok"),
        ('cd /tmp/copy && echo "=== test ==="; go test ./parse/', "ok"),
        ('cd a && echo "=== test ==="; cd ../b; go test ./$NAME/', "ok"),
    ],
)
def test_checks_that_cannot_be_repeated_alone_are_not_listed(
    config_home: ConfigHome, command: str, output: str
) -> None:
    """Checks between ``echo`` headings are not listed if one failed or if they can't be repeated alone.

    They can't be repeated alone if they ran in a loop, ran in a temporary folder, or use a
    variable.
    """
    assert (
        entry_texts(Talk().prompt("go").runs(command, output).digest(config_home), "commands") == []
    )


@pytest.mark.parametrize(
    "command",
    [
        "npx biome check --fix --unsafe .",
        "gofmt -w parse.go && gofmt -l parse.go",
        "ruff check --fix src",
        "prettier --write src",
        "npm init -y",
        "npx create-app@latest web",
        "cargo new parser",
    ],
)
def test_fixes_and_generators_are_not_listed(config_home: ConfigHome, command: str) -> None:
    """Automatic fixes and project generators are not listed. Checks that use the same programs are."""
    talk = Talk().prompt("go").runs(command).runs("ruff check src")
    assert entry_texts(talk.digest(config_home), "commands") == ["ruff check src"]


def test_a_failure_in_a_temporary_folder_is_not_listed(config_home: ConfigHome) -> None:
    """A command that failed in a temporary folder is not listed as a failure."""
    talk = Talk().prompt("go").runs_and_fails("cd /tmp/copy && go build ./x", "error: no such file")
    assert entry_texts(talk.runs("ls").digest(config_home), "failures") == []


@pytest.mark.parametrize(
    ("output", "is_open"), [("error: items after a test module", True), ("running 3 tests", False)]
)
def test_a_linter_in_a_failed_chain_must_pass_again(
    config_home: ConfigHome, output: str, *, is_open: bool
) -> None:
    """If a chain failed at its linter, only a later pass of the linter closes the error.

    If the chain's output shows that its tests ran, the linter had passed. A later pass of the tests
    then closes the error.
    """
    talk = Talk().prompt("go")
    talk.runs_and_fails("cargo fmt && cargo clippy -- -D warnings && cargo test one", output)
    talk.edits("/home/user/proj/a.rs")
    talk.runs("cargo fmt && cargo test one && git diff --stat")
    assert bool(entry_texts(talk.digest(config_home), "errors")) is is_open


def test_a_check_that_prints_a_diff_has_failed(config_home: ConfigHome) -> None:
    """``cargo fmt --check`` counts as failed if it printed a diff, even if the next command succeeded."""
    talk = Talk().prompt("go")
    talk.runs("cargo fmt --check; cargo test one", "Diff in /p/a.rs:88:\n     let a;\nok")
    assert entry_texts(talk.digest(config_home), "commands") == []


@pytest.mark.parametrize(
    ("later_command", "is_running"),
    [
        ("make test", False),
        ("make fmt && make test", False),
        ("make test-all", True),
        ("", True),
    ],
)
def test_a_background_command_that_ran_again_is_not_pending(
    config_home: ConfigHome, later_command: str, is_running: bool
) -> None:
    """A background command is not listed as running if it ran again later, alone or in a command chain."""
    talk = Talk().prompt("go")
    talk.runs("make test", "started", toolUseResult={"backgroundTaskId": "b7"})
    if later_command:
        talk.runs(later_command, "5 passed")
    digest = talk.says("Done.").digest(config_home)
    assert any("still running" in text for text in entry_texts(digest, "pending")) is is_running
