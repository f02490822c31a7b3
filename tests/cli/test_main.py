"""Tests of the whole command line: help, exit codes, errors as text or documents, and safe output."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from resume_hooks.__main__ import start
from resume_hooks.cli.verb_table import FORMER_VERBS, VERBS
from resume_hooks.errors import DISK_FAILURE_REMEDY
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.needs import REPO

HOSTILE_TEXT = "\x1b]0;owned\x07\x1b[2J\u202etitle\ud83d\x9b1m"
VERBS_THAT_ONLY_SHOW = ["lineage", "find-original", "find-derived", "info"]


def write_titled_session(
    home: ConfigHome, written_id: str = SESSION, title: str = "Fix the parser"
) -> str:
    """Write a session with two turns and a title, and return its path."""
    return write_session(
        home.project(),
        written_id,
        [*conversation(2, session_id=written_id), custom_title(title, written_id)],
    )


def test_the_command_without_words_shows_the_help(cli: Cli) -> None:
    """Without arguments, ``resume-hooks`` prints its help, which lists every verb."""
    bare, asked = cli(), cli("--help")
    assert (bare.returncode, bare.stdout) == (0, asked.stdout)
    text = bare.stdout.decode()
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", text, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(cli: Cli, verb: str) -> None:
    """The help of each verb contains examples that use the verb."""
    done = cli(verb, "--help")
    assert done.returncode == 0
    assert f"Examples:\n    resume-hooks {verb}".encode() in done.stdout


def test_version_is_printed(cli: Cli) -> None:
    """``--version`` prints the version of the engine."""
    assert re.match(rb"resume-hooks, version \d+\.\d+\.\d+", cli("--version").stdout)


@pytest.mark.parametrize(
    "words",
    [
        ["nothing"],
        ["lineage", "--what"],
        ["lineage", "a", "b"],
        ["handoff", "-n"],
        ["--what"],
        ["config", "x"],
    ],
)
def test_a_usage_error_exits_with_2(cli: Cli, words: list[str]) -> None:
    """A usage error exits with code 2 and prints one sentence to stderr.

    With ``--json``, it prints a document to stdout.
    """
    done = cli(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"resume-hooks: ")
    assert b"Traceback" not in done.stderr
    told = cli(*words[:1], "--json", *words[1:])
    assert (told.returncode, told.stderr) == (2, b"")
    assert json.loads(told.stdout)["error"]["code"] == "usage"


@pytest.mark.parametrize(
    ("words", "expected_line"),
    [
        (["nosuchverb"], "  resume-hooks --help"),
        (["linage"], "  Did you mean lineage? See resume-hooks --help"),
        (["trimm", "--json"], "Did you mean trim? See resume-hooks --help"),
        (["--what"], "  resume-hooks --help"),
        (["lineage", "--what"], "  resume-hooks lineage --help"),
    ],
)
def test_a_usage_error_names_the_help_of_the_verb(
    cli: Cli, words: list[str], expected_line: str
) -> None:
    """A usage error names the command that shows the verb's help.

    If the verb is unknown, the error names the general help and the most similar verb.
    """
    done = cli(*words)
    said = (
        json.loads(done.stdout)["error"]["remedy"]
        if "--json" in words
        else done.stderr.decode().rstrip()
    )
    assert said.split("\n")[-1] == expected_line
    assert "command" not in said


def test_an_error_about_a_claude_code_command_names_its_verb(cli: Cli) -> None:
    """If the user types a command that exists only in Claude Code, the error names the verb for the shell."""
    done = cli("full", "--table")
    said = "resume-hooks: /full is for Claude Code; in a shell it is `resume`\n  resume-hooks resume --help\n"
    assert (done.returncode, done.stderr.decode()) == (2, said)
    assert "/recall is for Claude Code\n" in cli("recall").stderr.decode(), "there is no such verb"


@pytest.mark.parametrize(("verb", "replacement"), FORMER_VERBS.items())
def test_a_former_verb_names_its_successor(cli: Cli, verb: str, replacement: str) -> None:
    """If a verb was replaced, the error names the new verb, even with options or ``--json``."""
    way = replacement.split(maxsplit=1)[0]
    for words in ([verb], [verb, "--help"], [verb, SESSION, "--what"]):
        done = cli(*words)
        said = f"resume-hooks: `{verb}` is `{replacement}` now\n  resume-hooks {way} --help\n"
        assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", said)
    error = json.loads(cli(verb, "--json").stdout)["error"]
    assert (error["code"], error["message"]) == ("usage", f"`{verb}` is `{replacement}` now")
    assert verb not in VERBS
    assert all(word in cli(way, "--help").stdout.decode() for word in replacement.split())


def test_suggested_commands_use_the_path_of_the_launcher(cli: Cli) -> None:
    """If ``resume-hooks`` is not on PATH, suggested commands use the path of the launcher."""
    engine = f"sh {shlex.quote(str(REPO / 'hooks' / 'engine'))}"
    done = cli("lineage", "--what", environ={"PATH": "/usr/bin:/bin"})
    assert done.stderr.decode().endswith(f"\n  {engine} lineage --help\n")
    done = cli("doctor", environ={"PATH": "/usr/bin:/bin"})
    assert f"Run: {engine} install\n" in done.stdout.decode()


@pytest.mark.parametrize("verb", [*VERBS_THAT_ONLY_SHOW, "handoff", "outline"])
@pytest.mark.parametrize(
    "locator", ["no such title", session_id(9), "deadbeef", "/no/such/file.jsonl", "x.jsonl"]
)
def test_an_unknown_locator_exits_with_1(
    cli: Cli, document: Document, verb: str, locator: str
) -> None:
    """If a locator is unknown, the exit code is 1 and the error code is "session-not-found"."""
    done = cli(verb, locator)
    assert (done.returncode, done.stdout) == (1, b"")
    assert document(verb, locator, code=1)["error"]["code"] == "session-not-found"


def test_fewer_than_four_characters_are_not_an_id(cli: Cli) -> None:
    """If a locator has only three characters, the error does not mention ids, which need at least four."""
    assert b"no id starts with it" in cli("info", "dead").stderr
    assert cli("info", "dea").stderr.startswith(b"resume-hooks: No session is called 'dea'\n")


def test_a_folder_without_sessions_exits_with_1(document: Document) -> None:
    """In a folder without sessions, a verb exits with code 1 if no locator is given."""
    assert document("lineage", code=1)["error"]["code"] == "session-not-found"


def test_a_bug_exits_with_3_and_is_logged_without_content(
    config_home: ConfigHome, cli: Cli
) -> None:
    """After a bug, the exit code is 3, and a private log contains the traceback but no exception text."""
    write_titled_session(config_home)
    broken = config_home.root / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import resume_hooks.sessions.locate as s\n"
        "def fail(*_, **__): raise ZeroDivisionError('sec' + 'ret')\n"
        "s.resolve_locator = fail\n"
    )
    environ = {"PYTHONPATH": f"{broken}:{REPO / 'src'}"}
    done = cli("lineage", environ=environ)
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"A bug: ZeroDivisionError" in done.stderr
    assert b"Traceback" not in done.stderr
    log = config_home.config / "resume-hooks" / "log" / "errors.log"
    assert b"ZeroDivisionError" in log.read_bytes()
    assert b"secret" not in log.read_bytes()
    assert log.stat().st_mode & 0o777 == 0o600
    told = cli("lineage", "--json", environ=environ)
    assert (told.returncode, json.loads(told.stdout)["error"]["code"]) == (3, "bug")


def test_an_unwritable_log_is_mentioned_with_the_bug(config_home: ConfigHome, cli: Cli) -> None:
    """If the log cannot be written, the message about the bug names the log and a remedy."""
    (config_home.root / "file").touch()
    state = config_home.root / "file" / "state"
    (config_home.root / "sitecustomize.py").write_text(
        "import resume_hooks.sessions.locate as s\ns.resolve_locator = lambda *_, **__: 1 / 0\n"
    )
    environ = {
        "PYTHONPATH": f"{config_home.root}:{REPO / 'src'}",
        "RESUME_HOOKS_HOME": str(state),
    }
    error = cli("lineage", environ=environ).stderr.decode()
    assert "A bug: ZeroDivisionError" in error
    assert "No existing session was changed." in error
    assert f"could not be written to {state}/log/errors.log: check the free space" in error


def test_a_full_disk_is_not_a_bug(config_home: ConfigHome, cli: Cli) -> None:
    """A full disk is an error with exit code 1. Its message names the file, the reason and a remedy.

    The error is not logged as a bug.
    """
    (config_home.root / "sitecustomize.py").write_text(
        "import errno, os\nimport resume_hooks.sessions.locate as s\n"
        "def fail(*_, **__): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), '/a/file')\n"
        "s.resolve_locator = fail\n"
    )
    done = cli("lineage", environ={"PYTHONPATH": f"{config_home.root}:{REPO / 'src'}"})
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().splitlines() == [
        "resume-hooks: Could not write /a/file: No space left on device",
        f"  {DISK_FAILURE_REMEDY}",
    ]
    assert not (config_home.config / "resume-hooks" / "log").exists()


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_do_not_block_a_verb(
    config_home: ConfigHome, cli: Cli, kind: str
) -> None:
    """If a settings file, a links file or a client's entry is a pipe or a device, verbs ignore it.

    Verbs do not wait until they can read from it.
    """
    write_titled_session(config_home)
    state, sessions = config_home.config / "resume-hooks", config_home.config / "sessions"
    state.mkdir()
    sessions.mkdir()
    for path in (state / "settings.json", state / "links.jsonl", sessions / "1.json"):
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
    for words in (["lineage", SESSION], ["config"], ["trim", SESSION, "--in-place", "--dry-run"]):
        assert cli(*words).returncode == 0
    assert b"not a readable settings file" in cli("doctor").stdout


def test_an_interrupt_exits_with_130(config_home: ConfigHome) -> None:
    """Ctrl+C ends a verb immediately, with exit code 130 and without a traceback."""
    path = config_home.project() / f"{SESSION}.jsonl"
    with path.open("wb") as stream:
        row = b'{"uuid":"%d","type":"user","parentUuid":null,"message":{"content":"x"}}\n'
        stream.writelines(row % n for n in range(1_000_000))
    command = [sys.executable, "-m", "resume_hooks", "info", SESSION]
    env = {**config_home.environ, "PYTHONPATH": str(REPO / "src")}
    # If a shell started the tests in the background, the tests' process ignores SIGINT, and the new
    # process would inherit this.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    signal.signal(signal.SIGINT, before)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def test_a_closed_pipe_is_not_an_error(config_home: ConfigHome) -> None:
    """If the reader of stdout closes the pipe, a verb exits with code 0 and prints no message."""
    previous: int | None = None
    for number in range(1, 600):
        meta = (
            [{"continue_metadata": {"parent_session_id": session_id(previous)}}] if previous else []
        )
        write_session(
            config_home.project(),
            session_id(number),
            [*meta, *conversation(1), custom_title("t" * 80)],
        )
        previous = number
    env = {**config_home.environ, "PYTHONPATH": str(REPO / "src"), "PATH": os.environ["PATH"]}
    for flag in ("", "--json"):
        line = f"{sys.executable} -m resume_hooks lineage {session_id(599)} {flag} | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", line], env=env, capture_output=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.count(b"\n") == 1


def output_on_terminal(
    home: ConfigHome, *words: str, typed_input: bytes = b"", **environ: str
) -> bytes:
    """Run a verb on a terminal, type ``typed_input``, and return the output."""
    ours, theirs = pty.openpty()
    os.write(ours, typed_input)
    env = {**home.environ, "PYTHONPATH": str(REPO / "src"), "TERM": "xterm-256color", **environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "resume_hooks", *words],
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # The process has closed its end of the terminal.
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    process.wait(timeout=30)
    return written


@pytest.mark.parametrize(
    "words",
    [
        *([verb, SESSION] for verb in VERBS_THAT_ONLY_SHOW),
        ["info", "0000"],
        ["find-derived", "PARENT"],
    ],
)
def test_control_characters_in_a_transcript_are_not_printed(
    config_home: ConfigHome, words: list[str]
) -> None:
    """Verbs remove control characters from titles, folders, branches, kinds and paths."""
    meta = {
        "continue_metadata": {
            "parent_file": f"/x/{HOSTILE_TEXT}",
            "continuation_type": HOSTILE_TEXT,
        }
    }
    for number in (SESSION, session_id(1), session_id(2)):
        records = [
            {**r, "cwd": HOSTILE_TEXT, "gitBranch": HOSTILE_TEXT, "version": HOSTILE_TEXT}
            for r in conversation(1)
        ]
        path = config_home.project() / f"{number}.jsonl"
        path.write_text(
            "".join(
                json.dumps(r) + "\n" for r in [meta, *records, custom_title(HOSTILE_TEXT, number)]
            )
        )
    tree = {"continue_metadata": {"parent_session_id": SESSION, "continuation_type": HOSTILE_TEXT}}
    child = config_home.project() / f"{session_id(3)}.jsonl"
    child.write_text(
        "".join(json.dumps(r) + "\n" for r in [tree, *conversation(1), custom_title(HOSTILE_TEXT)])
    )
    # Several ids begin with 0000, so the verb asks a question.
    leaving = {
        "typed_input": b"q\n",
        "TERM": "dumb",
    }
    for extra in ([], ["--tree"] if words[0] == "find-derived" else []):
        chosen = [SESSION if word == "PARENT" else word for word in words]
        written = output_on_terminal(config_home, *chosen, *extra, **leaving)  # type: ignore[arg-type]
        plain = re.sub(rb"\x1b\[(?:[0-2]|3[0-7])m", b"", written)
        assert plain
        text = plain.decode()
        assert not {c for c in text if ord(c) < 32 or 127 <= ord(c) < 160} - {"\n", "\r", "\t"}
        assert "\u202e" not in text
        assert "A bug" not in text


@pytest.mark.parametrize("verb", VERBS_THAT_ONLY_SHOW)
def test_a_document_with_hostile_fields_is_valid_json(
    config_home: ConfigHome, document: Document, verb: str
) -> None:
    """If fields contain lone surrogates and control characters, the JSON output is still valid."""
    path = config_home.project() / f"{SESSION}.jsonl"
    records = [{**r, "cwd": HOSTILE_TEXT, "gitBranch": HOSTILE_TEXT} for r in conversation(1)]
    path.write_text("".join(json.dumps(r) + "\n" for r in [*records, custom_title(HOSTILE_TEXT)]))
    document(verb, SESSION)


def test_output_adapts_to_the_encoding_of_the_terminal(config_home: ConfigHome, cli: Cli) -> None:
    """Characters that the encoding of the output does not have are printed as question marks."""
    write_titled_session(config_home, title="日本語 · ü")
    done = cli("lineage", SESSION, environ={"PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"??? \xb7 \xfc" in done.stdout


def test_a_verb_in_a_deleted_folder_explains_the_problem(config_home: ConfigHome, cli: Cli) -> None:
    """In a deleted folder, a verb prints one sentence about it and exits with code 2."""
    gone = config_home.root / "gone"
    gone.mkdir()
    script = f"cd {gone}; rmdir {gone}; exec {sys.executable} -m resume_hooks info"
    env = {**config_home.environ, "PYTHONPATH": str(REPO / "src"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["sh", "-c", script], env=env, capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"folder is gone" in done.stderr


@pytest.mark.parametrize("verb", VERBS_THAT_ONLY_SHOW)
def test_a_verb_that_only_reads_writes_nothing(
    config_home: ConfigHome, cli: Cli, verb: str
) -> None:
    """``lineage``, ``find-original``, ``find-derived`` and ``info`` write nothing."""
    write_titled_session(config_home)
    before = {path: path.lstat().st_mtime_ns for path in Path(config_home.root).rglob("*")}
    assert cli(verb, SESSION).returncode == 0
    assert {path: path.lstat().st_mtime_ns for path in Path(config_home.root).rglob("*")} == before


def test_the_default_is_the_latest_session_of_the_folder(config_home: ConfigHome, cli: Cli) -> None:
    """Without a locator, a verb uses the newest session of the current folder."""
    here = config_home.root / "here"
    write_session(config_home.project(str(here)), session_id(4), conversation(1), mtime=1_000_000)
    write_session(config_home.project(str(here)), session_id(5), conversation(1), mtime=2_000_000)
    write_session(config_home.project(CWD), session_id(6), conversation(1))
    assert session_id(5) in cli("info").stdout.decode()


def test_ctrl_c_during_the_import_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl+C during the import of the modules exits with code 130 and prints no traceback."""

    class InterruptedModule(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "resume_hooks.cli.main", InterruptedModule("main"))
    with pytest.raises(SystemExit) as ended:
        start()
    assert ended.value.code == 130


def test_help_as_a_value_of_an_option_shows_no_help(config_home: ConfigHome, cli: Cli) -> None:
    """If ``--help`` is the value of an option, the verb runs with this value and shows no help."""
    write_session(config_home.project(), SESSION, conversation(2))
    done = cli("handoff", SESSION, "--print", "-n", "--help")
    assert done.returncode == 0
    assert b"--help" in done.stdout
    assert b"Usage:" not in done.stdout
