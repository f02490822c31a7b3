"""``resume-hooks rollover`` with a summary: what people and programs are told, whatever becomes of the model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders import SESSION, ConfigHome, conversation, custom_title, session_id, write_session
from tests.cli.conftest import Cli, Document
from tests.needs import REPO
from tests.stand_in import StandIn, stand_in

GOOD = "result({'goal': 'Mend it.', 'state': 'Half done.', 'next': [{'text': 'Test it.', 'records': [1, 99]}]})"


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """A titled session whose folder exists."""
    cwd = config_home.root / "proj"
    cwd.mkdir()
    records = [{**record, "cwd": str(cwd)} for record in conversation(2)]
    return Path(write_session(config_home.project(str(cwd)), SESSION, [*records, custom_title("Fix the parser")]))


def environ_of(made: StandIn) -> dict[str, str]:
    """The environment in which a stand-in is the client."""
    return {"PATH": made.path}


def opening_of(file: str) -> str:
    """What a child opens with."""
    row = json.loads(Path(file).read_bytes().splitlines()[1])
    return str(row["message"]["content"])


def test_the_receipt(config_home: ConfigHome, document: Document, parent: Path) -> None:
    """The child, who wrote its summary and what that took; the model was told what the user wants of it."""
    made = stand_in(config_home.root, GOOD)
    found = document("rollover", SESSION, "-p", "focus on tabs", environ=environ_of(made))
    data = found["data"]
    assert (data["kind"], data["written"], data["title"]) == ("rollover", True, "Fix the parser · rollover 1")
    report = data["summary"]
    assert (report["included"], report["model"], report["failure"], report["material"]) == (True, "haiku", None, None)
    spent = {key: value for key, value in report["spent"].items() if key != "seconds"}
    assert spent == {
        "model": "haiku-of-the-day", "calls": 1, "tokens_in": 1_200, "tokens_out": 50, "cost_usd": 0.0125
    }  # fmt: skip
    assert found["warnings"] == []
    opening = opening_of(data["file"])
    for part in ("[SESSION LINEAGE]", "summary by haiku-of-the-day", "  - Test it. (:1)\n", "digest of"):
        assert part in opening
    (call,) = made.calls()
    assert "focus on tabs" in call["text"]


def test_the_receipt_for_people(config_home: ConfigHome, cli: Cli, parent: Path) -> None:
    """One line on the summary among the others."""
    done = cli("rollover", SESSION, environ=environ_of(stand_in(config_home.root, GOOD)))
    assert done.stderr == b""
    text = done.stdout.decode()
    assert "by haiku-of-the-day · 1 call, 1,200 tokens read, 50 written, " in text
    assert "0.0125 USD" in text
    assert "checks passed" in text


@pytest.mark.parametrize(
    ("body", "words", "said"),
    [
        ("print('I would rather chat')", (), "claude answered no JSON"),
        ("result({'goal': 5})", (), "does not fit"),
        ("time.sleep(300)", ("--timeout", "1"), "did not answer within 1 s"),
        ("result(is_error=True, result='Not logged in')", ("--model", "opus"), "opus gave no answer: Not logged in"),
        (None, (), "claude is not installed"),
    ],
)
def test_a_failure_leaves_the_digest(
    config_home: ConfigHome, document: Document, parent: Path, body: str | None, words: tuple[str, ...], said: str
) -> None:
    """Exit code 0, for there is a child; what is missing in it is said."""
    environ = environ_of(stand_in(config_home.root, body)) if body else {}
    found = document("rollover", SESSION, *words, environ=environ)
    assert said in found["data"]["summary"]["failure"]
    assert found["data"]["summary"]["included"] is False
    (warning,) = found["warnings"]
    assert warning.startswith("The summary failed: ")
    assert warning.endswith("; the digest alone is in it.")
    opening = opening_of(found["data"]["file"])
    assert "digest of" in opening
    assert "summary by" not in opening


def test_a_dry_run_asks_nobody(config_home: ConfigHome, document: Document, cli: Cli, parent: Path) -> None:
    """What would be read, in how many calls; nothing is written, no model asked."""
    made = stand_in(config_home.root, GOOD)
    before = sorted(config_home.root.rglob("*"))
    data = document("rollover", SESSION, "--dry-run", environ=environ_of(made))["data"]
    assert data["written"] is False
    assert data["summary"]["spent"] is None
    material = data["summary"]["material"]
    assert (material["records"], material["shown"], material["parts"], material["calls"]) == (4, 4, 1, 1)
    assert material["tokens"] > 0
    text = cli("rollover", SESSION, "--dry-run", environ=environ_of(made)).stdout.decode()
    assert "haiku would be asked 1 time to read 4 of 4 records, about " in text
    assert sorted(config_home.root.rglob("*")) == before
    assert made.calls() == []


def test_the_settings_name_the_model(config_home: ConfigHome, document: Document, parent: Path) -> None:
    """``--model`` wins over the setting; what would be an option of the client's is no model."""
    made = stand_in(config_home.root, GOOD)
    environ = environ_of(made) | {"RESUME_HOOKS_SUMMARY_MODEL": "sonnet"}
    document("rollover", SESSION, environ=environ)
    document("rollover", SESSION, "--model", "opus[1m]", environ=environ)
    assert [call["argv"][call["argv"].index("--model") + 1] for call in made.calls()] == ["sonnet", "opus[1m]"]
    error = document("rollover", SESSION, "--model", "--bare", code=2, environ=environ)["error"]
    assert error["code"] == "usage"


def test_start_runs_the_client_on_the_child(config_home: ConfigHome, cli: Cli, parent: Path) -> None:
    """The same program is asked first, and started then."""
    body = f"print('started', sys.argv[1:]) if '--resume' in sys.argv else {GOOD}"
    done = cli("rollover", SESSION, "--start", environ=environ_of(stand_in(config_home.root, body)))
    (child,) = (path for path in parent.parent.iterdir() if path != parent)
    assert done.stdout.decode().strip().split("\n")[-1] == f"started ['--resume', '{child.stem}']"


def test_ctrl_c_leaves_the_digest_and_says_so(config_home: ConfigHome, parent: Path) -> None:
    """130; the model's process is gone, the child that was made first is named."""
    made = stand_in(config_home.root, "time.sleep(300)")
    env = {**config_home.environ, **environ_of(made), "PYTHONPATH": str(REPO / "src")}
    command = [sys.executable, "-m", "resume_hooks", "rollover", SESSION]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as process:
        deadline = time.monotonic() + 30
        while not list(made.calls_folder.glob("*.json")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    (child,) = (path for path in parent.parent.iterdir() if path != parent)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().strip() == f"Interrupted: the digest alone is in the new session. /resume {child.stem}"
    assert not os.path.exists(made.calls()[0]["folder"])


def test_nothing_to_hand_off(config_home: ConfigHome, document: Document) -> None:
    """No model is asked about a session without a turn."""
    made = stand_in(config_home.root, GOOD)
    write_session(config_home.project(), session_id(3), [custom_title("x")])
    error = document("rollover", session_id(3), code=1, environ=environ_of(made))["error"]
    assert error["code"] == "nothing-to-hand-off"
    assert made.calls() == []


def test_the_source_is_only_read(config_home: ConfigHome, document: Document, parent: Path) -> None:
    """Byte for byte, with its times."""
    before = (parent.read_bytes(), parent.stat().st_mtime_ns)
    document("rollover", SESSION, environ=environ_of(stand_in(config_home.root, GOOD)))
    assert (parent.read_bytes(), parent.stat().st_mtime_ns) == before
