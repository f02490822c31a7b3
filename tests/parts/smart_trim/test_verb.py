"""Tests of ``resume-hooks trim --smart``.

The verb shows the plan first and writes the child only after a yes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from tests.builders import SESSION, ConfigHome
from tests.cli.conftest import Cli, Document
from tests.derive.trim.sessions import LONG_OUTPUT, Chain, write_project_session
from tests.needs import REPO

STAND_IN_SCRIPT = r"""#!{python}
import json, re, sys
text = sys.stdin.read()
numbers = [int(n) for n in re.findall(r"^#(\d+) · ", text, re.M)]
rows = [dict(number=n, description="a listing", rationale="nothing refers to it") for n in numbers]
{body}
print(json.dumps(dict(type="result", structured_output=dict(choices=rows), total_cost_usd=0.01,
                      usage=dict(input_tokens=900, output_tokens=80), modelUsage={{"small-1": dict(outputTokens=80)}})))
"""

MakeClient = Callable[..., dict[str, str]]


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session with two outputs of reading a file and two others, and return its path."""
    chain = (
        Chain()
        .ask("go")
        .call_with_result("t1", "Read", LONG_OUTPUT * 3, file_path="/a")
        .call_with_result("t2", "Read", LONG_OUTPUT, file_path="/a")
    )
    chain.call_with_result("t3", "Bash", LONG_OUTPUT * 3, command="ls").call_with_result(
        "t4", "Bash", LONG_OUTPUT * 2, command="pwd"
    ).answer("ok").add_short_turns(2)
    return write_project_session(config_home, chain)


@pytest.fixture
def make_client(tmp_path: Path) -> MakeClient:
    """Return a function that writes a stand-in for ``claude`` and returns an environment with its PATH."""

    def install_stand_in(body: str = "") -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        file = folder / "claude"
        file.write_text(STAND_IN_SCRIPT.format(python=sys.executable, body=body), encoding="utf-8")
        file.chmod(0o755)
        return {"PATH": f"{folder}:/usr/bin:/bin"}

    return install_stand_in


def test_without_a_terminal_the_plan_is_shown(
    cli: Cli, parent: Path, make_client: MakeClient
) -> None:
    """Without a terminal, the verb shows the plan, writes no child, and names ``--yes``."""
    before = sorted(os.listdir(parent.parent))
    done = cli("smart-trim", SESSION, environ=make_client())
    said = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    for words in (
        "a resume sends",
        "superseded (1)",
        "chosen by the model (3)",
        "a listing",
        "why: nothing refers to it",
    ):
        assert words in said
    assert "small-1: 1 call, 900 tokens read, 80 written" in said
    assert said.endswith("Nothing was written.\n")
    assert b"--yes" in done.stderr
    assert sorted(os.listdir(parent.parent)) == before


def test_the_option_yes_writes_the_child(cli: Cli, parent: Path, make_client: MakeClient) -> None:
    """With ``--yes``, the verb shows the plan and then writes the child without asking."""
    before = parent.read_bytes()
    said = cli("smart-trim", SESSION, "--yes", environ=make_client()).stdout.decode()
    assert said.index("chosen by the model (3)") < said.index("wrote") < said.index("/resume ")
    assert "checks passed" in said
    assert " · trim --smart" in said
    assert parent.read_bytes() == before
    assert len(os.listdir(parent.parent)) == 2


def test_a_stored_plan_can_be_written_later(
    document: Document, parent: Path, make_client: MakeClient, tmp_path: Path
) -> None:
    """``--plan`` writes exactly the plan that ``--json`` printed, without a model."""
    shown = document("smart-trim", SESSION, "--dry-run", environ=make_client())
    assert not shown["data"]["written"]
    assert [row["by"] for row in shown["data"]["smart"]["choices"]] == [
        "superseded",
        "smart",
        "smart",
        "smart",
    ]
    assert shown["data"]["smart"]["spent"] == {
        "model": "small-1", "calls": 1, "tokens_in": 900, "tokens_out": 80, "cost_usd": 0.01,
        "seconds": shown["data"]["smart"]["spent"]["seconds"],
    }  # fmt: skip
    kept = tmp_path / "plan.json"
    kept.write_text(json.dumps(shown), encoding="utf-8")
    made = document("smart-trim", "--plan", str(kept), "--yes")  # No client is on PATH here.
    assert made["data"]["written"]
    assert made["data"]["smart"]["spent"]["calls"] == 0
    assert made["data"]["smart"]["choices"] == shown["data"]["smart"]["choices"]
    assert made["data"]["tokens_after"] == shown["data"]["tokens_after"]
    assert "a listing" in Path(made["data"]["file"]).read_text(encoding="utf-8")
    assert made["data"]["parent_session_id"] == SESSION


def test_json_without_yes_writes_nothing(
    document: Document, parent: Path, make_client: MakeClient
) -> None:
    """``--json`` without ``--yes`` writes no child."""
    found = document("smart-trim", SESSION, environ=make_client())
    assert not found["data"]["written"]
    assert "--yes" in found["warnings"][-1]
    assert len(os.listdir(parent.parent)) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('no credits')", "claude ended with status 1: no credits"),
        ("print('Sure! [1, 2]'); sys.exit(0)", "claude did not answer with JSON"),
        ("rows = [1, 2]", "does not fit"),
        ("import time; time.sleep(60)", "did not answer within 1 s"),
        ("import os; os.kill(os.getpid(), 9)", "ended by signal 9"),
    ],
    ids=["died", "prose", "wrong form", "hangs", "killed"],
)
def test_a_failed_model_is_reported(
    document: Document, parent: Path, make_client: MakeClient, body: str, message: str
) -> None:
    """If the model fails, the error states the reason and the command that trims without a model.

    No child is written.
    """
    error = document(
        "smart-trim",
        SESSION,
        "--yes",
        "--timeout",
        "1" if "sleep" in body else "30",
        code=1,
        environ=make_client(body),
    )["error"]
    assert error["code"] == "headless-failed"
    assert message in error["message"]
    assert (
        f"Nothing was written. To trim without a model: resume-hooks trim {SESSION}"
        in error["remedy"]
    )
    assert os.listdir(parent.parent) == [parent.name]


def test_a_missing_client_is_reported(document: Document, parent: Path) -> None:
    """If no client is on PATH, the error says so, and no child is written."""
    error = document("smart-trim", SESSION, "--yes", code=1)["error"]
    assert "claude is not installed" in error["message"]
    assert "resume-hooks trim" in error["remedy"]
    assert os.listdir(parent.parent) == [parent.name]


def test_a_short_session_asks_no_model(document: Document, config_home: ConfigHome) -> None:
    """For a short session the model is not asked, and no child is written."""
    write_project_session(config_home, Chain().ask("hello").answer("hi"))
    found = document("smart-trim", SESSION, "--yes")
    assert (
        found["data"]["written"],
        found["data"]["smart"]["spent"]["calls"],
        found["data"]["file"],
    ) == (False, 0, "")


def test_invalid_plans_are_refused(
    document: Document, parent: Path, make_client: MakeClient, tmp_path: Path
) -> None:
    """A plan is refused if it is missing, was edited, or belongs to another verb or session."""
    shown = document("smart-trim", SESSION, "--dry-run", environ=make_client())
    shown["data"]["smart"]["choices"][0]["digest"] = "0" * 64
    other = {
        **shown,
        "data": {**shown["data"], "parent_session_id": "22222222-2222-4222-8222-222222222222"},
    }
    file = tmp_path / "plan.json"
    for content, code, name in (
        (b"\xff\xfe", 2, "usage"),
        (b"[]", 2, "usage"),
        (json.dumps({**shown, "verb": "fork"}).encode(), 2, "usage"),
        (json.dumps({**shown, "data": {}}).encode(), 2, "usage"),
        (json.dumps(other).encode(), 2, "usage"),
        (json.dumps(shown).encode(), 1, "plan-outdated"),
    ):
        file.write_bytes(content)
        assert (
            document("smart-trim", "--plan", str(file), "--yes", code=code)["error"]["code"] == name
        )
    assert document("smart-trim", "--plan", str(tmp_path), code=2)["error"]["code"] == "usage"
    assert (
        document("smart-trim", "--plan", str(file), "-p", "more", code=2)["error"]["code"]
        == "usage"
    )
    assert os.listdir(parent.parent) == [parent.name]


@pytest.mark.parametrize(
    "words",
    [
        ["--smart", "--tools", "Read"],
        ["--smart", "--threshold", "500"],
        ["--smart", "--assistant", "1"],
        ["--smart", "--target-tokens", "9"],
        ["--smart", "--only", "media"],
        ["--smart", "--skip", "media"],
        ["--smart", "--min-savings", "9"],
        ["--smart", "--in-place"],
        ["--smart", "--force"],
        ["--yes"],
        ["--smart", "--timeout", "0"],
    ],
)
def test_mixed_trim_options_are_refused(document: Document, parent: Path, words: list[str]) -> None:
    """``trim`` refuses options of a smart trim without ``--smart``, and options of a plain trim with it."""
    assert document("trim", SESSION, *words, code=2)["error"]["code"] == "usage"
    assert os.listdir(parent.parent) == [parent.name]


def test_a_model_name_cannot_be_an_option(
    document: Document, parent: Path, make_client: MakeClient
) -> None:
    """A model's name that looks like an option is refused."""
    error = document(
        "smart-trim",
        SESSION,
        "--model=--dangerously-skip-permissions",
        code=2,
        environ=make_client(),
    )["error"]
    assert "--model must be the name of a model" in error["message"]


@pytest.mark.parametrize("reply", ["y", "n"])
def test_trim_asks_on_a_terminal(
    config_home: ConfigHome, parent: Path, make_client: MakeClient, reply: str
) -> None:
    """``trim --smart`` on a terminal shows the plan and writes the child only after a yes."""
    environ = {
        **config_home.environ,
        **make_client(),
        "PYTHONPATH": str(REPO / "src"),
        "TERM": "xterm",
    }
    terminal = pexpect.spawn(
        sys.executable, ["-m", "resume_hooks", "smart-trim", SESSION], env=environ, encoding="utf-8",
        cwd=str(config_home.root), dimensions=(200, 120), timeout=60,
    )  # fmt: skip
    terminal.expect("Asking haiku, 1 of 1")
    terminal.expect("chosen by the model")
    terminal.expect("Write this child")
    terminal.sendline(reply)
    terminal.expect("checks passed" if reply == "y" else "Nothing was written")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert len(os.listdir(parent.parent)) == (2 if reply == "y" else 1)


def test_an_empty_locator_is_refused(document: Document, parent: Path) -> None:
    """An empty locator is refused, because it may come from an unset variable."""
    assert document("smart-trim", "", "--dry-run", code=2)["error"]["code"] == "usage"
