"""Tests of ``handoff`` and ``rollover``, with and without a summary.

They cover receipts, dry runs and ``--start``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resume_hooks.derive.fresh_child import OPENING_RECORD_LINE_NUMBER
from tests.builders import SESSION, ConfigHome, conversation, custom_title, write_session
from tests.cli.conftest import Cli, Document
from tests.needs import REPO
from tests.stand_in import StandIn, write_stand_in

COMMANDS_WITHOUT_SUMMARY = [("handoff",), ("rollover", "--quick")]


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session with a title and a folder of further files, and return the session's path."""
    cwd = config_home.root / "proj"
    cwd.mkdir()
    records = [{**record, "cwd": str(cwd)} for record in conversation(2)]
    return Path(
        write_session(
            config_home.project(str(cwd)), SESSION, [*records, custom_title("Fix the parser")]
        )
    )


def path_with_fake_client(home: ConfigHome) -> str:
    """Write a program ``claude`` that prints its arguments, and return a PATH that contains it."""
    folder = home.root / "bin"
    folder.mkdir()
    client = folder / "claude"
    client.write_text('#!/bin/sh\necho "client in $(pwd): $*"\n')
    client.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def list_files_beside_session(parent: Path) -> list[Path]:
    """Return the files in a session's folder, without the session's own file."""
    return [path for path in parent.parent.iterdir() if path != parent]


@pytest.mark.parametrize("words", COMMANDS_WITHOUT_SUMMARY)
def test_the_json_document_of_a_receipt_describes_the_child_and_its_parent(
    document: Document, parent: Path, words: tuple[str, ...]
) -> None:
    """The JSON document of ``handoff`` and ``rollover --quick`` describes the child and its parent."""
    verb, *options = words
    data = document(verb, SESSION, *options)["data"]
    (child,) = list_files_beside_session(parent)
    assert (data["file"], data["session_id"], data["written"], data["kind"]) == (
        str(child),
        child.stem,
        True,
        verb,
    )
    assert (data["parent_session_id"], data["parent_file"]) == (SESSION, str(parent))
    assert (data["title"], data["tokens_before"]) == (f"Fix the parser · {verb}", 1_300)
    assert (data["chars_saved"], data["tools_trimmed"]) == (0, 0)
    assert all(check["ok"] for check in data["checks"])
    folder = parent.parent.parent.parent.parent / "proj"
    assert data["commands"] == {
        "in_client": f"/resume {child.stem}",
        "shell": f"cd {folder} && claude --resume {child.stem}",
    }


@pytest.mark.parametrize("words", COMMANDS_WITHOUT_SUMMARY)
def test_the_printed_receipt_names_child_and_parent(
    cli: Cli, parent: Path, words: tuple[str, ...]
) -> None:
    """The printed receipt names the child, the unchanged parent, and the commands."""
    text = cli(*words, SESSION).stdout.decode()
    (child,) = list_files_beside_session(parent)
    for part in (
        f"Fix the parser · {words[0]}",
        str(child),
        f"{SESSION} (unchanged)",
        f"/resume {child.stem}",
        " checks passed",
    ):
        assert part in text


def test_a_quick_rollover_asks_no_model(document: Document, parent: Path) -> None:
    """``rollover --quick`` asks no model, and refuses the options for a summary."""
    for option in (["--with-summary"], ["-p", "x"], ["--model", "haiku"], ["--timeout", "9"]):
        error = document("rollover", SESSION, "--quick", *option, code=2)["error"]
        assert (error["code"], error["message"]) == ("usage", "--quick asks no model")
    assert list_files_beside_session(parent) == []
    assert document("rollover", SESSION, "--quick")["data"]["summary"] is None


@pytest.mark.parametrize("words", COMMANDS_WITHOUT_SUMMARY)
def test_start_runs_the_client_on_the_child(
    config_home: ConfigHome, cli: Cli, parent: Path, words: tuple[str, ...]
) -> None:
    """``--start`` prints the receipt and then starts the client with the child in the session's folder."""
    done = cli(*words, SESSION, "--start", environ={"PATH": path_with_fake_client(config_home)})
    (child,) = list_files_beside_session(parent)
    last = done.stdout.decode().strip().split("\n")[-1]
    assert last == f"client in {config_home.root / 'proj'}: --resume {child.stem}"


@pytest.mark.parametrize("words", COMMANDS_WITHOUT_SUMMARY)
def test_start_writes_no_child_if_the_client_cannot_start(
    config_home: ConfigHome,
    document: Document,
    parent: Path,
    tmp_path: Path,
    words: tuple[str, ...],
) -> None:
    """``--start`` writes no child if the client is missing or cannot start in the child's folder."""

    def run_refused_start(
        *options: str, code: int = 1, environ: dict[str, str] | None = None
    ) -> str:
        return str(
            document(*words, SESSION, "--start", *options, code=code, environ=environ)["error"][
                "message"
            ]
        )

    assert "claude is not on PATH" in run_refused_start()
    environ = {"PATH": path_with_fake_client(config_home)}
    (tmp_path / "out").mkdir()
    assert "another folder" in run_refused_start(
        "--output-dir", str(tmp_path / "out"), code=2, environ=environ
    )
    (config_home.root / "proj").rmdir()
    assert "no longer exists" in run_refused_start(environ=environ)
    assert [*list_files_beside_session(parent), *(tmp_path / "out").iterdir()] == []


SUMMARY_BODY = (
    "result({'goal': 'Mend it.', 'state': 'Half done in old.py.', 'next': [{'text': 'Test it.', 'records': [1, "
    "99]}]})"
)


def environment_with_stand_in(stand_in: StandIn) -> dict[str, str]:
    """Return an environment in which the command ``claude`` runs the stand-in."""
    return {"PATH": stand_in.path}


def opening_of_file(file: str) -> str:
    """Return the opening of a child."""
    row = json.loads(Path(file).read_bytes().splitlines()[OPENING_RECORD_LINE_NUMBER])
    return str(row["message"]["content"])


def test_the_receipt_of_a_rollover_describes_the_summary(
    config_home: ConfigHome, cli: Cli, document: Document, parent: Path
) -> None:
    """The receipt of a rollover names the summary's model and states what the summary cost.

    The user's instruction is sent to the model.
    """
    made = write_stand_in(config_home.root, SUMMARY_BODY)
    found = document(
        "rollover", SESSION, "-p", "focus on tabs", environ=environment_with_stand_in(made)
    )
    data = found["data"]
    assert (data["kind"], data["written"], data["title"]) == (
        "rollover",
        True,
        "Fix the parser · rollover",
    )
    report = data["summary"]
    assert (report["included"], report["model"], report["failure"], report["material"]) == (
        True,
        "haiku",
        None,
        None,
    )
    spent = {key: value for key, value in report["spent"].items() if key != "seconds"}
    assert spent == {
        "model": "haiku-of-the-day", "calls": 1, "tokens_in": 1_200, "tokens_out": 50, "cost_usd": 0.0125
    }  # fmt: skip
    assert report["checked"] == {"sentences": 3, "tied": 0, "marked": 1}
    assert found["warnings"] == []
    opening = opening_of_file(data["file"])
    for part in (
        "[SESSION LINEAGE]",
        "summary by haiku-of-the-day",
        "  - Test it. (:1)\n",
        "in old.py. [not",
        "digest of",
    ):
        assert part in opening
    (call,) = made.calls()
    assert "focus on tabs" in call["text"]
    done = cli("rollover", SESSION, environ=environment_with_stand_in(made))
    assert done.stderr == b""
    text = done.stdout.decode()
    assert "by haiku-of-the-day · 1 call, 1,200 tokens read, 50 written, " in text
    assert "0.0125 USD" in text
    assert " USD · of 3 sentences 0 tied to records, 1 not in the transcript\n" in text
    assert "checks passed" in text


@pytest.mark.parametrize(
    ("script_body", "words", "expected_text"),
    [
        ("print('I would rather chat')", (), "claude did not answer with JSON"),
        ("result({'goal': 5})", (), "does not fit"),
        ("time.sleep(300)", ("--timeout", "1"), "did not answer within 1 s"),
        (
            "result(is_error=True, result='Not logged in')",
            ("--model", "opus"),
            "opus gave no answer: Not logged in",
        ),
        (None, (), "claude is not installed"),
    ],
)
def test_a_failed_summary_leaves_a_child_with_the_digest(
    config_home: ConfigHome,
    document: Document,
    parent: Path,
    script_body: str | None,
    words: tuple[str, ...],
    expected_text: str,
) -> None:
    """If the model fails, ``rollover`` writes a child with the digest and exits with code 0.

    A warning gives the reason.
    """
    environ = (
        environment_with_stand_in(write_stand_in(config_home.root, script_body))
        if script_body
        else {}
    )
    found = document("rollover", SESSION, *words, environ=environ)
    assert expected_text in found["data"]["summary"]["failure"]
    assert found["data"]["summary"]["included"] is False
    assert found["data"]["summary"]["checked"] is None
    (warning,) = found["warnings"]
    assert warning.startswith("No summary: ")
    assert warning.endswith(". The new session has only the digest.")
    opening = opening_of_file(found["data"]["file"])
    assert "digest of" in opening
    assert "summary by" not in opening


def test_a_dry_run_of_a_rollover_asks_no_model(
    config_home: ConfigHome, document: Document, cli: Cli, parent: Path
) -> None:
    """``rollover --dry-run`` asks no model and writes nothing.

    It shows how many tokens a model would read, and in how many calls.
    """
    made = write_stand_in(config_home.root, SUMMARY_BODY)
    before = sorted(config_home.root.rglob("*"))
    data = document("rollover", SESSION, "--dry-run", environ=environment_with_stand_in(made))[
        "data"
    ]
    assert data["written"] is False
    assert data["summary"]["spent"] is None
    material = data["summary"]["material"]
    assert (material["records"], material["shown"], material["parts"], material["calls"]) == (
        4,
        4,
        1,
        1,
    )
    assert material["tokens"] > 0
    text = cli(
        "rollover", SESSION, "--dry-run", environ=environment_with_stand_in(made)
    ).stdout.decode()
    assert "haiku would be asked 1 time to read 4 of 4 records, about " in text
    assert sorted(config_home.root.rglob("*")) == before
    assert made.calls() == []


def test_the_model_of_a_rollover_comes_from_the_settings(
    config_home: ConfigHome, document: Document, parent: Path
) -> None:
    """The setting ``summary_model`` chooses the model of a rollover, and ``--model`` overrides it.

    A model name that looks like an option is refused.
    """
    made = write_stand_in(config_home.root, SUMMARY_BODY)
    environ = environment_with_stand_in(made) | {"RESUME_HOOKS_SUMMARY_MODEL": "sonnet"}
    document("rollover", SESSION, environ=environ)
    document("rollover", SESSION, "--model", "opus[1m]", environ=environ)
    assert [call["argv"][call["argv"].index("--model") + 1] for call in made.calls()] == [
        "sonnet",
        "opus[1m]",
    ]
    error = document("rollover", SESSION, "--model", "--bare", code=2, environ=environ)["error"]
    assert error["code"] == "usage"


def test_start_runs_the_client_on_a_child_with_a_summary(
    config_home: ConfigHome, cli: Cli, parent: Path
) -> None:
    """With ``rollover --start``, the same client first writes the summary and then opens the child."""
    body = f"print('started', sys.argv[1:]) if '--resume' in sys.argv else {SUMMARY_BODY}"
    done = cli(
        "rollover",
        SESSION,
        "--start",
        environ=environment_with_stand_in(write_stand_in(config_home.root, body)),
    )
    (child,) = list_files_beside_session(parent)
    assert done.stdout.decode().strip().split("\n")[-1] == f"started ['--resume', '{child.stem}']"


def test_ctrl_c_during_a_rollover_leaves_a_child_with_the_digest(
    config_home: ConfigHome, parent: Path
) -> None:
    """Ctrl+C during a rollover ends the model's process and leaves a child with the digest.

    The exit code is 130, and the output names the child.
    """
    made = write_stand_in(config_home.root, "time.sleep(300)")
    env = {
        **config_home.environ,
        **environment_with_stand_in(made),
        "PYTHONPATH": str(REPO / "src"),
    }
    command = [sys.executable, "-m", "resume_hooks", "rollover", SESSION]
    with subprocess.Popen(
        command, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
    ) as process:
        deadline = time.monotonic() + 30
        while not list(made.calls_folder.glob("*.json")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    (child,) = list_files_beside_session(parent)
    assert (process.returncode, out) == (130, b"")
    assert (
        err.decode().strip()
        == f"Interrupted: the new session has only the digest. /resume {child.stem}"
    )
    assert not os.path.exists(made.calls()[0]["folder"])
