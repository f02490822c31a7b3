"""Run the evals: 20 prompts after which a model should search earlier sessions, and 20 others."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.harness.client import NEWEST_VERSION, ClientHome, find_client
from tests.e2e.harness.mock_api import MockApi, Request
from tests.e2e.harness.replies import Reply
from tests.e2e.plugin import build_plugin
from tests.needs import REPO

EVALS_FOLDER = REPO / "evals"
AGENT_PROMPT = 'why {"did"} we'
SEARCH_SKILL_CALL = {"name": "Skill", "input": {"skill": "resume-hooks:session-search"}}
SEARCH_AGENT_CALL = {
    "name": "Agent",
    "input": {
        "subagent_type": "resume-hooks:session-searcher",
        "description": "look it up",
        "prompt": AGENT_PROMPT,
        "run_in_background": False,
    },
}
OTHER_SKILL_CALL = {
    "name": "Skill",
    "input": {"skill": "verify", "args": "resume-hooks:session-search"},
}
# The client needs 80 s for all 40 cases. Unless RUN_ALL=1, only the two cases of each kind with the
# tag "smoke" run.
CASE_SELECTION_OPTIONS = [] if os.environ.get("RUN_ALL") == "1" else ["--tag", "smoke"]


def list_case_files(kind: str) -> list[Path]:
    """Return the files of all cases of one kind."""
    return sorted((EVALS_FOLDER / kind).glob("*/case.yaml"))


def prompt_of(case: Path) -> str:
    """Return the user's prompt in a case."""
    found = re.search(
        r"^  prompt: \|\n((?:    .*\n|\n)+)", case.read_text(encoding="utf-8"), re.MULTILINE
    )
    return found[1].strip() if found else ""


def test_there_are_twenty_different_cases_of_each_kind() -> None:
    """There are twenty cases of each kind. All have different prompts and the same pattern for calls."""
    kinds = {"fires": "contains", "passes": "not_contains"}
    texts = {
        kind: [case.read_text(encoding="utf-8") for case in list_case_files(kind)] for kind in kinds
    }
    assert {kind: len(found) for kind, found in texts.items()} == {"fires": 20, "passes": 20}
    assert len({prompt_of(case) for kind in kinds for case in list_case_files(kind)}) == 40
    assert (
        len({re.findall(r"pattern: (.*)", text)[0] for found in texts.values() for text in found})
        == 1
    )
    for kind, match in kinds.items():
        assert all(re.findall(r"match: (\w+)", text) == [match] for text in texts[kind])
        assert [re.findall(r"^name: (.*)", text, re.MULTILINE)[0] for text in texts[kind]] == [
            f"{kind}-{case.parent.name}" for case in list_case_files(kind)
        ]


def model_with_reply(reply: Reply) -> Callable[[Request], Reply]:
    """Return a model that answers the first request with ``reply`` and then ends the turn."""

    def script(request: Request) -> Reply:
        said = any(message["role"] == "assistant" for message in request["messages"])
        return (
            "done"
            if said or AGENT_PROMPT in request["messages"][0]["content"][-1].get("text", "")
            else reply
        )

    return script


class EvalSuite:
    """Runs the evals in a temporary home, with a plugin that contains the cases."""

    def __init__(self, folder: Path) -> None:
        self.home = ClientHome(folder / "home")
        self.plugin = build_plugin(folder / "plugin")
        self.report = folder / "report.json"
        shutil.copytree(EVALS_FOLDER, self.plugin / "evals")

    def run_eval(self, reply: Reply, *options: str) -> tuple[str, dict[str, float]]:
        """Run ``claude plugin eval`` with a model that makes this reply.

        Returns the output and the score of each case.
        """
        fixed = ["--trust-plugin", "--no-publish", "--runs", "1", "--ablation", "none", "-j", "2"]
        command = [*find_client(NEWEST_VERSION).command, "plugin", "eval", str(self.plugin), *fixed]
        with MockApi(model_with_reply(reply)) as api:
            done = subprocess.run(
                [
                    *command,
                    "--json",
                    str(self.report),
                    "--output-dir",
                    str(self.home.root / "results"),
                    *options,
                ],
                cwd=self.home.cwd,
                env=self.home.env(api.client_env()),
                capture_output=True,
                text=True,
                timeout=280,
                check=False,
            )
        cases = json.loads(self.report.read_text(encoding="utf-8"))["cases"]
        return done.stdout + done.stderr, {
            case["name"]: case["aggregates"]["score"] for case in cases
        }


@pytest.fixture
def eval_suite(tmp_path: Path) -> Iterator[EvalSuite]:
    """Return the suite of evals. After the test, end its clients."""
    made = EvalSuite(tmp_path)
    yield made
    made.home.end_processes()


@pytest.mark.e2e
def test_all_cases_load(eval_suite: EvalSuite) -> None:
    """The client loads all cases without an error. If a case file is damaged, the client reports this."""
    said, scores = eval_suite.run_eval("done", "--max-cost-usd", "0.00001", "-j", "1")
    assert "case file" not in said
    assert len(scores) == 1
    broken = eval_suite.plugin / "evals" / "fires" / "why-dropped" / "case.yaml"
    broken.write_text(
        broken.read_text(encoding="utf-8").replace("type: regex", "type: rgx"), encoding="utf-8"
    )
    assert (
        "Couldn't load 1 case file" in eval_suite.run_eval("done", "--case", "fires-why-dropped")[0]
    )


@pytest.mark.wide
@pytest.mark.e2e
@pytest.mark.parametrize(
    ("reply", "fires_score", "passes_score"),
    [
        (SEARCH_SKILL_CALL, 1, 0),
        pytest.param(SEARCH_AGENT_CALL, 1, 0, marks=pytest.mark.wide),
        pytest.param(OTHER_SKILL_CALL, 0, 1, marks=pytest.mark.wide),
    ],
    ids=["skill", "agent", "other"],
)
def test_the_called_skill_or_agent_decides_which_cases_pass(
    eval_suite: EvalSuite, reply: Reply, fires_score: float, passes_score: float
) -> None:
    """A model that always calls the plugin's skill or agent passes the first 20 cases and no others.

    A model that calls a different skill fails the first 20 cases and passes the others.
    """
    _, scores = eval_suite.run_eval(reply, *CASE_SELECTION_OPTIONS)
    assert len(scores) == (4 if CASE_SELECTION_OPTIONS else 40)
    for name, score in scores.items():
        assert score == (fires_score if name.startswith("fires-") else passes_score), name
