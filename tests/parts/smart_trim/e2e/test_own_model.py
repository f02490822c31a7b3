"""Tests of ``/trim --smart`` in a client whose prompt cache is warm.

The session's own model chooses the contents in an extra request after the session's last request.
"""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness.api_requests import Request, last_user_text
from tests.e2e.harness.client import Tui
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import (
    ENGINE_ENV,
    SOURCE_SESSION,
    children_of_session,
    text_of_request,
    wait_for_child,
)
from tests.e2e.test_context_rollover import is_headless_request
from tests.e2e.test_forked_rollover import (
    BASH_CALL,
    WARM_CACHE_USAGE,
    added_prompt,
    model_that_replies,
)
from tests.e2e.test_trim_trigger import outputs_by_call
from tests.needs import corpus, one_in
from tests.parts.smart_trim.models import NUMBER_PATTERN

ASKING_MODEL_PATTERN = r"asking this session's model \(42,300 tokens cached\)"
WISH = "keep what has an even number"


def open_session(tui: Tui, plugin: Path) -> Path:
    """Open a real session in the client and return its path."""
    parent = tui.home.install_session(corpus() / SOURCE_SESSION, str(uuid.uuid4()), set_cwd=True)
    tui.start(resume=parent.stem, plugin_dir=plugin, extra_env=ENGINE_ENV)
    return parent


def run_turn(tui: Tui) -> None:
    """Run a turn whose token counts show a warm cache."""
    tui.api.usage = WARM_CACHE_USAGE
    tui.submit("remember the word ALPHA")
    tui.wait_for("Mock reply 1")
    tui.wait_until_idle()


def choose_odd_numbers(request: Request) -> Any:
    """Return the answer of the session's model: each odd number, and one that was not shown."""
    numbers = [int(number) for number in NUMBER_PATTERN.findall(last_user_text(request))]
    rows = [
        {"number": n, "description": f"piece {n}", "rationale": "done with"}
        for n in numbers
        if n % 2
    ]
    return f"Here you are.\n```json\n{json.dumps({'choices': [*rows, {**rows[0], 'number': 9_999}]})}\n```"


def wait_for_requests(tui: Tui, count: int) -> bool:
    """Wait until there are ``count`` requests, and return whether they arrived in time."""
    return wait_until(lambda: len(tui.api.main_requests()) == count)


@pytest.mark.parametrize("terminal_size", one_in(2, [(80, 24), None]))
def test_the_models_choice_is_trimmed(
    modern_tui: Tui, plugin: Path, terminal_size: tuple[int, int] | None
) -> None:
    """After a yes, the client opens a copy of the session without the contents that the model chose.

    The model gets the last request again, its own answer and our prompt. If the user types new
    options instead of a yes, the model is asked again.
    """
    if terminal_size:
        modern_tui.columns, modern_tui.rows = terminal_size
    parent = open_session(modern_tui, plugin)
    run_turn(modern_tui)
    (last,) = modern_tui.api.main_requests()
    before = parent.read_bytes()
    modern_tui.api.script = choose_odd_numbers
    modern_tui.submit("/trim")
    for number, words in enumerate(("keep the ALPHAS", WISH), 1):
        modern_tui.wait_for("1. Open the trimmed copy")
        modern_tui.wait_until_idle(2)
        for _ in range(4 - number):  # Move to the line below the choices.
            modern_tui.key("Down")
        modern_tui.type(f"--smart {words}")
        modern_tui.wait_for(f"--smart {words}")
        modern_tui.key("Enter")
        assert wait_for_requests(modern_tui, 1 + number)
        modern_tui.wait_until_gone(words)
        first, *_, again = modern_tui.api.main_requests()
        assert first == last
        asked = added_prompt(last, again)
        assert json.dumps(asked).count(words) == 1
        assert "cache_control" not in json.dumps(asked)
    modern_tui.wait_for("1. Open the trimmed copy")
    modern_tui.wait_until_idle(2)
    for words in (
        "saves about",
        "chosen by claude-",
        "piece [0-9]+ · ",
        "it took 41,000 tokens read from the cache",
    ):
        assert re.search(words, modern_tui.text())
    assert "Trim here" not in modern_tui.text()
    assert children_of_session(modern_tui.home, parent) == []
    modern_tui.key("1")
    modern_tui.wait_until_gone("1. Open the trimmed copy")
    modern_tui.wait_until_idle()
    child = wait_for_child(modern_tui.home, parent)
    modern_tui.wait_until_idle(1)
    assert parent.read_bytes().startswith(before), "the client appends; nothing else may change"
    modern_tui.api.script = ()
    modern_tui.api.clear_requests()
    modern_tui.submit("now go on GAMMA")
    assert wait_for_requests(modern_tui, 1)
    said = text_of_request(modern_tui.api.main_requests()[-1])
    old, new = outputs_by_call(parent), outputs_by_call(child)
    gone = {call for call in old if '"piece ' in new[call]}
    assert len(gone) > 3
    assert [new[call] for call in gone if new[call] not in said] == []
    assert [
        old[call][:80] for call in gone if old[call] in said and old[call] not in new.values()
    ] == []


def test_without_an_answer_no_child_is_made(tui: Tui, plugin: Path) -> None:
    """If the model does not answer, no child is made, and the reason and a shell command are shown.

    The model is not asked while its cache is cold. After Esc, no copy is made, and no question is
    open.
    """
    parent = open_session(tui, plugin)
    named = rf"trim\s+--smart\s+{parent.stem}"
    tui.submit("/trim --smart")
    tui.wait_for("its cache is cold")
    tui.wait_for(named)
    assert not tui.api.main_requests()
    run_turn(tui)
    for replies, shown in (
        ([BASH_CALL, BASH_CALL], "empty-reply"),
        (["I would rather say it in prose."], r"in\s+prose"),
    ):
        tui.api.script = model_that_replies(*replies)
        tui.submit("/trim --smart")
        tui.wait_for(rf"{shown}(.*\n)*.*{named}")
        tui.wait_until_idle()
    asked = len(tui.api.main_requests())
    tui.api.script = model_that_replies([120.0, "late"])
    tui.submit("/trim --smart")
    tui.wait_for(ASKING_MODEL_PATTERN)
    assert wait_for_requests(tui, asked + 1)
    tui.key("Escape")
    tui.wait_until_gone("asking this session's model")
    tui.api.release_delayed_replies()
    tui.wait_until_idle()
    tui.submit("/trim yes")
    tui.wait_for("nothing to confirm")
    assert not any(map(is_headless_request, tui.api.main_requests()))
    assert children_of_session(tui.home, parent) == []
    assert not (tui.home.cwd / "ran").exists()
