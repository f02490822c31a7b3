"""Tests of ``/rollover`` in a client with a warm prompt cache.

The session's own model writes the summary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness.client import Tui
from tests.e2e.harness.mock_api import Request, Usage
from tests.e2e.harness.processes import wait_until
from tests.e2e.harness.replies import Refusal, Reply
from tests.e2e.plugin import (
    LINEAGE_MARKER,
    children_of_session,
    data_of_verb,
    path_of_open_session,
    text_of_request,
    wait_for_child,
)
from tests.e2e.test_context_rollover import (
    SUMMARY,
    environment_with_client_on_path,
    is_headless_request,
    model_that_summarises,
)
from tests.needs import one_in

SUMMARY_JSON = json.dumps(SUMMARY)
GITHUB_TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
SILENT_ENV = {"RESUME_HOOKS_CLIPBOARD": "none", "RESUME_HOOKS_VAULT": "off"}
"""Environment variables that turn off the plugin's clipboard and its question about archived copies."""

WARM_CACHE_USAGE = Usage(11, 7, 41_000, 1_300)
BASH_CALL = {"name": "Bash", "input": {"command": "touch ran"}}


def start_session_with_warm_cache(tui: Tui, plugin: Path, folder: Path) -> Path:
    """Start a session with one turn after which the API reports a warm cache, and return its file."""
    tui.api.usage = WARM_CACHE_USAGE
    tui.start(
        plugin_dir=plugin,
        extra_env=environment_with_client_on_path(tui.version, folder / "bin") | SILENT_ENV,
    )
    tui.submit("remember the word ALPHA")
    tui.wait_for("Mock reply 1")
    tui.wait_until_idle()
    (parent,) = tui.home.sessions()
    return parent


def model_that_replies(*replies: Reply) -> Callable[[Request], Reply | None]:
    """Return a model that gives ``replies`` to the session and a summary to a headless run."""
    left = list(replies)

    def reply(request: Request) -> Reply | None:
        return (
            model_that_summarises(request)
            if is_headless_request(request)
            else left.pop(0)
            if left
            else None
        )

    return reply


def added_prompt(earlier: Request, extended: Request) -> Any:
    """Return the prompt that the request ``extended`` adds to the request ``earlier``.

    Check that ``extended`` repeats ``earlier``, that the answer to ``earlier`` follows and has a
    cache mark, and that the prompt follows the answer.
    """
    assert {name for name in extended if extended[name] != earlier.get(name)} == {"messages"}
    sent, kept = extended["messages"], earlier["messages"]
    assert remove_cache_marks(sent[: len(kept)]) == remove_cache_marks(kept)
    answer, asked = sent[len(kept) :]
    assert answer["role"] == "assistant"
    assert answer["content"][-1] == {
        "type": "text",
        "text": "Mock reply 1.",
        "cache_control": {"type": "ephemeral"},
    }
    assert asked["role"] == "user"
    return asked


def remove_cache_marks(value: Any) -> Any:
    """Return a part of a request without cache marks.

    If a message's content is a string, the result contains a list with one text block instead.
    """
    if isinstance(value, list):
        return [remove_cache_marks(each) for each in value]
    if not isinstance(value, dict):
        return value
    plain = {key: remove_cache_marks(each) for key, each in value.items() if key != "cache_control"}
    return (
        plain | {"content": [{"type": "text", "text": plain["content"]}]}
        if isinstance(plain.get("content"), str)
        else plain
    )


@pytest.mark.parametrize("size", one_in(2, [(80, 24), None]))
def test_a_rollover_extends_the_last_request(
    modern_tui: Tui, plugin: Path, tmp_path: Path, size: tuple[int, int] | None
) -> None:
    """The request for the summary consists of the last request, its answer, and the plugin's prompt.

    The answer has a cache mark. No other request is sent. The client shows the request's token
    usage, and the child contains the summary.
    """
    if size:
        modern_tui.columns, modern_tui.rows = size
    parent = start_session_with_warm_cache(modern_tui, plugin, tmp_path)
    (last,) = modern_tui.api.main_requests()
    (modern_tui.home.cwd / "notes.txt").write_text("WORDS-OF-A-FILE")
    before = parent.read_bytes()
    modern_tui.api.script = model_that_replies(
        [2.0, f"Here you are.\n```json\n{SUMMARY_JSON}\n```"]
    )
    modern_tui.submit("/rollover focus on BETA of @notes.txt")
    modern_tui.wait_for(r"asking this session's model \(42,300 tokens cached\)")
    child = wait_for_child(modern_tui.home, parent)
    assert b"digest of" in child.read_bytes()
    assert b"summary by" not in child.read_bytes()
    took = r"41,000 tokens read from the cache, 1,300 written to it, 11 uncached, 7 in the answer"
    modern_tui.wait_for(took.replace(" ", r"\s+"))
    modern_tui.wait_for("Rolled over from")
    modern_tui.wait_until_gone("asking this session's model")
    modern_tui.wait_until_idle()
    first, again = modern_tui.api.main_requests()
    assert first == last
    asked = added_prompt(last, again)
    assert json.dumps(asked).count("focus on BETA of @notes.txt") == 1
    assert not {word for word in ("cache_control", "WORDS-OF-A-FILE") if word in json.dumps(asked)}
    assert parent.read_bytes().startswith(before)
    assert children_of_session(modern_tui.home, parent) == [child]
    modern_tui.api.script = ()
    modern_tui.submit("now go on GAMMA")
    modern_tui.wait_for("Mock reply [0-9]")
    told = text_of_request(modern_tui.api.main_requests()[-1])
    assert told.index(LINEAGE_MARKER) < told.index("summary by claude-") < told.index("digest of")
    assert re.search(r"^  - Say it again\. \(:[0-9](, :[0-9])*\)$", told, re.MULTILINE)
    for part in (
        "goal: Teach the parser BETA.",
        "The word (/SESSION LINEAGE) was said.",
        "now go on GAMMA",
    ):
        assert part in told


def wait_for_open_child(tui: Tui, parent: Path) -> Path:
    """Wait until the client has opened the child of a rollover, and return the child's file."""
    child = wait_for_child(tui.home, parent)
    assert wait_until(lambda: path_of_open_session(tui) == child)
    tui.wait_until_idle()
    return child


def run_turn(tui: Tui, usage: Usage = WARM_CACHE_USAGE) -> None:
    """Run a turn for which the API reports ``usage``, and then delete the recorded requests."""
    tui.api.usage = usage
    tui.api.clear_requests()
    tui.submit("once more")
    assert wait_until(lambda: bool(tui.api.main_requests()))
    tui.wait_until_idle()
    tui.api.clear_requests()


@pytest.mark.parametrize(
    "replies_by_shown_reason",
    [
        {
            r"api-error\s+400\s+invalid_request": [Refusal(400, "prompt is too long")] * 4,
            "empty-reply": [BASH_CALL, BASH_CALL],
        },
        pytest.param(
            {"empty-reply": [{"thinking": "hm", "signature": "s"}]}, marks=pytest.mark.wide
        ),
        pytest.param({r"in\s+prose": ["I would rather say it in prose."]}, marks=pytest.mark.wide),
    ],
    ids=["refused, then a tool-call", "empty", "prose"],
)
def test_a_rollover_without_an_answer_asks_the_headless_model(
    tui: Tui, plugin: Path, tmp_path: Path, replies_by_shown_reason: dict[str, list[Reply]]
) -> None:
    """If the session's model returns no summary, a headless run writes the summary for the child.

    The reason is reported, and no tool call in the model's reply runs. After a resume, the client
    has no last request that could be extended, so the headless run writes the summary immediately.
    """
    session = start_session_with_warm_cache(tui, plugin, tmp_path)
    for shown, replies in replies_by_shown_reason.items():
        tui.api.script = model_that_replies(*replies)
        tui.submit("/rollover")
        tui.wait_for(shown)
        session = wait_for_open_child(tui, session)
        assert b"summary by claude-haiku" in session.read_bytes()
        run_turn(tui)
    assert not (tui.home.cwd / "ran").exists()
    tui.close()
    tui.start(
        resume=session.stem,
        plugin_dir=plugin,
        extra_env=environment_with_client_on_path(tui.version, tmp_path / "again") | SILENT_ENV,
    )
    tui.submit("/rollover")
    tui.wait_for(r"gave no answer:\s+nothing\s+has\s+been\s+sent")
    child = wait_for_open_child(tui, session)
    assert all(map(is_headless_request, tui.api.main_requests()))
    assert b"summary by claude-haiku" in child.read_bytes()


def test_a_rollover_asks_another_model_if_it_costs_less(
    tui: Tui, plugin: Path, tmp_path: Path
) -> None:
    """``/rollover`` asks another model if the session's model has no warm cache.

    The cache is not warm if the user has switched the model or if the API reports no cached tokens.
    If the user has chosen a model in the settings, this model is asked even if the cache is warm.
    """
    session = start_session_with_warm_cache(tui, plugin, tmp_path)
    for why in ("switched", "cold", "named"):
        if why == "switched":
            tui.submit("/model sonnet")
            tui.wait_for("Switch model")
            tui.key("Enter")
            tui.wait_for("Set model to")
            tui.wait_until_idle()
        elif why == "cold":
            run_turn(tui, Usage())
        else:
            run_turn(tui)
            data_of_verb(tui.home, "config", "summary_model", "haiku")
        tui.api.clear_requests()
        tui.api.script = model_that_replies()
        tui.submit("/rollover")
        session = wait_for_open_child(tui, session)
        assert tui.api.main_requests(), why
        assert all(map(is_headless_request, tui.api.main_requests())), why


def test_a_rollover_after_esc_uses_the_same_child(tui: Tui, plugin: Path, tmp_path: Path) -> None:
    """After Esc during ``/rollover``, a second ``/rollover`` adds the summary to the child of the first.

    Before that, the child contains only a digest. A reply that arrives after Esc is not added to
    any child. A summary that is too long is shortened, and secrets are removed from it.
    """
    parent = start_session_with_warm_cache(tui, plugin, tmp_path)
    tui.api.script = model_that_replies([120.0, SUMMARY_JSON.replace("BETA", "LATE")])
    tui.submit("/rollover")
    tui.wait_for("asking this session's model")
    assert wait_until(lambda: len(tui.api.main_requests()) == 2)
    tui.key("Escape")
    tui.wait_until_gone("asking this session's model")
    child = wait_for_child(tui.home, parent)
    tui.wait_for(rf"no summary\.\s+/resume\s+{child.stem}")
    tui.api.release_delayed_replies()
    tui.wait_until_idle()
    huge = {
        "goal": f"Teach {GITHUB_TOKEN} BETA.",
        "state": "x" * 5_000_000,
        "next": [{"text": "y" * 9_000}] * 300,
    }
    tui.api.script = model_that_replies(json.dumps(huge))
    tui.submit("/rollover")
    assert wait_for_open_child(tui, parent) == child
    made = child.read_text()
    assert re.search("goal: Teach .*secret removed.* BETA.", made)
    assert "summary by claude-" in made
    assert "LATE" not in made
    assert len(made) < 40_000
    assert GITHUB_TOKEN not in made
