"""Tests that the shell, the trigger and the Python function order hits in the same way."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from resume_hooks import search_sessions
from resume_hooks.cli.main import cli
from resume_hooks.hooks import prompt
from resume_hooks.hooks.search import MAX_CARD_HITS
from resume_hooks.hooks.triggers import recognise_trigger
from tests.builders import ConfigHome, session_id
from tests.search.asking import write_talk


@pytest.mark.parametrize(
    "query",
    ["tune the linter", "why is the linter slow since May?", '"tune the"', "linter -6", "lintre"],
)
def test_all_interfaces_give_the_same_order(
    config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """The shell, the trigger and the Python function give the same hits in the same order.

    The hits have the same strengths.
    """
    monkeypatch.chdir(tmp_path)
    for number in range(1, 12):
        said = ["tune the linter", f"so slow, in all of the {number} tasks"][number % 2 :]
        write_talk(
            config_home,
            number,
            f"task {number}: {' '.join(said)} {'now ' * number}",
            "ok",
            cwd=str(tmp_path),
        )
    hits = search_sessions(query, limit=MAX_CARD_HITS)
    assert len(hits) > 1
    done = CliRunner().invoke(cli, ["search", query, "--json"], catch_exceptions=False)
    shell = json.loads(done.stdout)["data"]["hits"][:MAX_CARD_HITS]
    assert [(hit["reference"], hit["strength"]) for hit in shell] == [
        (hit.reference, hit.strength) for hit in hits
    ]
    trigger = recognise_trigger(f">search {query}")
    assert trigger is not None
    card = prompt.card_of_trigger(
        trigger, {"session_id": session_id(99), "prompt": f">search {query}"}
    )
    shown = re.findall(r"/resume (\S+) · (strong|fair|weak), ", card)
    assert len(shown) > 1
    assert shown == [(hit.session_id, hit.strength) for hit in hits][: len(shown)]
