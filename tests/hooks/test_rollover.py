"""Tests of ``/rollover``, and of ``>rollover``, which runs in the hook with a stand-in for ``claude``."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import clock
from resume_hooks.hooks.client_module import answer_module_request
from tests.builders import SESSION, ConfigHome, assistant, conversation, line, user, write_session
from tests.hooks.conftest import RunHook, TypePrompt, list_children
from tests.needs import REPO
from tests.stand_in import StandIn, write_stand_in

SUMMARY_ANSWER = "result({'goal': 'Mend it.', 'state': 'Half done.'})"


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session of two turns and return its path."""
    return Path(write_session(config_home.project(), SESSION, conversation(2)))


def prompt_event(prompt: str) -> dict[str, str]:
    """Return the hook's event for a prompt."""
    return {"session_id": SESSION, "prompt": prompt, "hook_event_name": "UserPromptSubmit"}


def card_of_prompt(
    type_prompt: TypePrompt, stand_in: StandIn, prompt: str = ">rollover", **environ: str
) -> str:
    """Return the answer to a prompt, with ``stand_in`` as the program ``claude`` on PATH."""
    return type_prompt(prompt, PATH=stand_in.path, **environ)


@pytest.mark.parametrize("sign", [">", "/resume-hooks:"])
def test_the_card_of_a_rollover_shows_model_and_costs(
    config_home: ConfigHome, type_prompt: TypePrompt, parent: Path, sign: str
) -> None:
    """The card of a rollover names the model, its costs, and the command to continue.

    The card's last line is short enough for a busy client.
    """
    made = write_stand_in(config_home.root, SUMMARY_ANSWER)
    text = card_of_prompt(type_prompt, made, f"{sign}rollover focus on tabs")
    (child,) = list_children(parent)
    assert text.startswith("rolled over · the /resume line not copied\n")
    assert "it contains a summary by haiku-of-the-day and a digest" in text
    assert "of 2 sentences 0 tied to records, 0 not in the transcript" in text
    assert "it took 1 call, 1,200 tokens read, 50 written, " in text
    assert f"/resume {child.stem}" in text
    assert len(text.split("\n")[-1]) <= 40
    assert b"summary by haiku-of-the-day" in child.read_bytes()
    assert "focus on tabs" in made.calls()[0]["text"]


def test_a_repeated_rollover_costs_nothing(
    config_home: ConfigHome, type_prompt: TypePrompt, parent: Path
) -> None:
    """If a rollover is repeated with the same words, it opens the existing child and asks no model.

    A rollover with different words makes a new child.
    """
    made = write_stand_in(config_home.root, SUMMARY_ANSWER)
    first = card_of_prompt(type_prompt, made, ">rollover tabs")
    again = card_of_prompt(type_prompt, made, ">rollover tabs")
    assert again.startswith("already rolled over")
    told = re.compile(r"it contains")
    rows = [row for row in first.split("\n") if told.search(row)]
    assert rows
    assert [row for row in again.split("\n") if told.search(row)] == rows
    assert len(list_children(parent)) == len(made.calls()) == 1
    card_of_prompt(type_prompt, made, ">rollover spaces")
    assert len(list_children(parent)) == len(made.calls()) == 2


def test_a_rollover_after_another_prompt_makes_a_new_child(
    config_home: ConfigHome, type_prompt: TypePrompt, parent: Path
) -> None:
    """If the user typed another prompt after a rollover, the next rollover makes a new child.

    The old child does not contain that prompt.
    """
    made = write_stand_in(config_home.root, SUMMARY_ANSWER)
    card_of_prompt(type_prompt, made)
    with parent.open("ab") as stream:
        stream.write(
            line(user("and now?", uuid="x", parent="r3", ts="2099-01-01T00:00:00.000Z")) + b"\n"
        )
    assert card_of_prompt(type_prompt, made).startswith("rolled over")
    assert len(made.calls()) == 2


@pytest.mark.parametrize(
    ("answer_script", "reason"),
    [
        ("result(is_error=True, result='Not logged in')", "haiku gave no answer: Not logged in"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "claude was ended by signal 9"),
        ("print('\\x1b[31mno')", "claude did not answer with JSON"),
    ],
)
def test_a_failed_summary_is_reported(
    config_home: ConfigHome, type_prompt: TypePrompt, parent: Path, answer_script: str, reason: str
) -> None:
    """If the summary fails, the child contains only the digest.

    The card states the reason and shows the commands that try again.
    """
    made = write_stand_in(config_home.root, answer_script)
    text = card_of_prompt(type_prompt, made)
    (child,) = list_children(parent)
    assert text.startswith("rolled over without a summary · ")
    assert f"No summary: {reason}. The new session has only the digest." in text
    command = f"sh {shlex.quote(f'{REPO}/hooks/engine')} rollover {SESSION}"
    assert (
        f"to try again, type >rollover in the old session (/resume {SESSION}), or in a shell: {command}"
        in text
    )
    assert f"/resume {child.stem}" in text
    assert b"digest of" in child.read_bytes()


def test_a_rollover_without_a_client_has_only_the_digest(
    config_home: ConfigHome, run_hook: RunHook, parent: Path
) -> None:
    """If ``claude`` is not on PATH, a rollover makes a child with only the digest."""
    done = run_hook("prompt", prompt_event(">rollover"), environ={"PATH": "/nowhere"})
    assert (
        "claude is not installed, or not on PATH. The new session has only"
        in json.loads(done.stdout)["reason"]
    )
    assert len(list_children(parent)) == 1


def start_and_wait_for_model(config_home: ConfigHome, stand_in: StandIn) -> subprocess.Popen[bytes]:
    """Start the hook in its own process and wait until it has asked the model."""
    env = {**config_home.environ, "PATH": stand_in.path, "RESUME_HOOKS_CLIPBOARD": "none"}
    command = [sys.executable, "-I", str(REPO / "hooks" / "prompt.py")]
    hook = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert hook.stdin is not None
    hook.stdin.write(json.dumps(prompt_event(">rollover")).encode())
    hook.stdin.close()
    deadline = time.monotonic() + 30
    while not list(stand_in.calls_folder.glob("*.json")):
        assert hook.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return hook


def test_esc_keeps_the_child_with_the_digest(config_home: ConfigHome, parent: Path) -> None:
    """After Esc, the child with the digest still exists, and the model's process has ended.

    The client ends the hook's process when the user presses Esc.
    """
    made = write_stand_in(config_home.root, "time.sleep(300)")
    with start_and_wait_for_model(config_home, made) as hook:
        hook.send_signal(signal.SIGTERM)
    (child,) = list_children(parent)
    assert b"digest of" in child.read_bytes()
    assert not Path(made.calls()[0]["folder"]).exists()


@pytest.mark.parametrize(
    "answer_script",
    [
        "result(is_error=True, result='Not logged in')",
        "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(0.2)",
    ],
)
def test_a_failed_summary_is_tried_again(
    config_home: ConfigHome,
    run_hook: RunHook,
    type_prompt: TypePrompt,
    parent: Path,
    answer_script: str,
) -> None:
    """After a failure or Esc, a repetition of the rollover adds the summary to the existing child."""
    run_hook(
        "prompt",
        prompt_event(">rollover"),
        environ={"PATH": write_stand_in(config_home.root, answer_script).path},
    )
    assert card_of_prompt(type_prompt, write_stand_in(config_home.root, SUMMARY_ANSWER)).startswith(
        "rolled over · "
    )
    (child,) = list_children(parent)
    assert b"summary by" in child.read_bytes()


def test_a_parallel_rollover_names_the_child(
    config_home: ConfigHome, type_prompt: TypePrompt, parent: Path
) -> None:
    """If a rollover is already running, a second one names its child and does not ask the model again."""
    made = write_stand_in(config_home.root, "time.sleep(300)")
    with start_and_wait_for_model(config_home, made) as hook:
        text = card_of_prompt(type_prompt, made)
        hook.terminate()
    assert text.startswith("already rolled over")
    assert "The summary is still being written" in text
    assert len(list_children(parent)) == len(made.calls()) == 1


MODEL_USAGE = {
    "cache_read_input_tokens": 41_000,
    "cache_creation_input_tokens": 1_300,
    "input_tokens": 11,
    "output_tokens": 7,
}
SESSION_MODEL = "claude-opus-4-5"


@pytest.fixture
def warm_session(config_home: ConfigHome) -> Path:
    """Write a session whose model has just answered, so that its prompt cache is warm."""
    first, last = conversation(2), clock.now()
    usage = {**MODEL_USAGE, "cache_creation": {"ephemeral_5m_input_tokens": 1_300}}
    answer = assistant(
        "Half of it is done.",
        uuid="last",
        parent=first[-1]["uuid"],
        ts=last,
        tokens=usage,
        model=SESSION_MODEL,
    )
    return Path(write_session(config_home.project(), SESSION, [*first, answer]))


def ask_engine(args: str = "", **answer_fields: object) -> dict[str, Any]:
    """Return the engine's reply to ``/rollover``.

    ``answer_fields`` are the fields in which the module reports the answer of the session's model.
    """
    event = {
        "session_id": SESSION,
        "screen": True,
        "waiting": True,
        "args": args,
        "forked": {"model": SESSION_MODEL, **answer_fields},
    }
    reply = answer_module_request("rollover", event)
    json.dumps(reply)
    return reply


def test_the_sessions_own_model_is_asked_first_if_its_cache_is_warm(warm_session: Path) -> None:
    """If the prompt cache of the session's own model is warm, a rollover asks this model first.

    The child exists before the model is asked. The model's summary is then added to the child, and
    the remark shows the cost.
    """
    asked = ask_engine("focus on tabs")
    (child,) = list_children(warm_session)
    assert asked["wait"] == "asking this session's model (42,300 tokens cached): up to two minutes"
    assert "focus on tabs" in asked["fork"]
    assert re.search(
        r"<material .*ASSISTANT :4\n +Half of it is done\.", asked["fork"], re.DOTALL
    ), "the digest, with references"
    assert b"summary by" not in child.read_bytes()
    made = ask_engine(
        "focus on tabs",
        isAnswered=True,
        text='{"goal": "Mend it.", "state": "Half done."}',
        usage=MODEL_USAGE,
    )
    assert list_children(warm_session) == [child]
    assert made["open"] == child.stem
    assert b"summary by claude-opus-4-5" in child.read_bytes()
    assert (
        "41,000 tokens read from the cache, 1,300 written to it, 11 uncached, 7 in the answer"
        in made["remark"]
    )
    again = ask_engine("focus on tabs")
    assert again["open"] == child.stem, "asked for once"
    assert "already rolled over" in again["by_hand"]


@pytest.mark.parametrize(
    ("forked_answer", "remark_text"),
    [
        (
            {"isAnswered": False, "reason": "nothing-to-fork"},
            "gave no answer: nothing has been sent to it since the session was opened here",
        ),
        (
            {"isAnswered": False, "reason": "empty-reply", "usage": MODEL_USAGE},
            "and took 41,000 tokens read from the cache",
        ),
        ({"isAnswered": True, "text": "In prose.", "usage": MODEL_USAGE}, "answered in prose"),
    ],
)
def test_the_headless_model_is_asked_after_the_sessions_model(
    warm_session: Path,
    config_home: ConfigHome,
    monkeypatch: pytest.MonkeyPatch,
    forked_answer: dict[str, Any],
    remark_text: str,
) -> None:
    """If the session's own model gives no summary, the rollover asks the headless model.

    The summary from the headless model goes into the existing child. The remark shows the costs of
    both models.
    """
    made = write_stand_in(config_home.root, SUMMARY_ANSWER)
    monkeypatch.setenv("PATH", made.path)
    assert ask_engine()["fork"]
    done = ask_engine(**forked_answer)
    (child,) = list_children(warm_session)
    assert b"summary by haiku-of-the-day" in child.read_bytes()
    assert remark_text in done["remark"]
    assert "; haiku-of-the-day took 1 call, 1,200 tokens read" in done["remark"]
    assert "Records of the session" in made.calls()[0]["text"]


def test_no_second_model_is_asked_after_the_time_limit(
    warm_session: Path, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the session's own model takes too long, the rollover does not ask a second model.

    If the user types the same ``/rollover`` later, the session's own model is asked again, for the
    same child.
    """
    made = write_stand_in(config_home.root, SUMMARY_ANSWER)
    monkeypatch.setenv("PATH", made.path)
    ask_engine()
    late = ask_engine(reason="late")
    (child,) = list_children(warm_session)
    assert "No summary: claude-opus-4-5 did not answer within 120 s" in late["remark"]
    assert (late["open"], made.calls()) == (child.stem, [])
    assert ask_engine()["fork"]
    assert list_children(warm_session) == [child]


@pytest.mark.parametrize("obstacle", ["named", "another", "cold", "no module"])
def test_the_sessions_model_is_not_asked_if_it_costs_more(
    warm_session: Path, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    """If a different model is set, or if the cache has expired, the session's own model is not asked."""
    monkeypatch.setenv("PATH", write_stand_in(config_home.root, SUMMARY_ANSWER).path)
    if obstacle == "named":
        monkeypatch.setenv("RESUME_HOOKS_SUMMARY_MODEL", "haiku")
    if obstacle == "cold":
        monkeypatch.setattr(clock, "now", lambda: "2099-01-01T00:00:00.000Z")
    model = {"another": "claude-sonnet-4-5", "no module": None}.get(obstacle, SESSION_MODEL)
    made = ask_engine(model=model)
    assert made["remark"] == ""
    (child,) = list_children(warm_session)
    assert b"summary by haiku-of-the-day" in child.read_bytes()


def test_the_child_is_named_while_the_sessions_model_is_asked(
    warm_session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the session's own model is answering a rollover, a repetition of the rollover names its child.

    After Esc, or if the answer takes too long, the repeated rollover asks the model again.
    """
    ask_engine()
    (child,) = list_children(warm_session)
    assert "The summary is still being written" in ask_engine()["by_hand"]
    gone = answer_module_request(
        "left", {"session_id": SESSION, "screen": True, "args": "rollover"}
    )
    assert f"/resume {child.stem} opens the new session" in gone["text"]
    assert ask_engine()["fork"]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 300)
    assert ask_engine()["fork"]
    assert list_children(warm_session) == [child]


def test_a_summary_for_a_continued_child_goes_into_a_new_child(warm_session: Path) -> None:
    """If the user has continued the child before the summary arrives, the summary goes into a new child."""
    ask_engine()
    (first,) = list_children(warm_session)
    with first.open("ab") as stream:
        stream.write(line(user("hello", uuid="x", ts="2099-01-01T00:00:00.000Z")) + b"\n")
    before = first.read_bytes()
    ask_engine(isAnswered=True, text='{"goal": "Mend it.", "state": "Half done."}')
    assert first.read_bytes() == before
    (second,) = (path for path in list_children(warm_session) if path != first)
    assert b"summary by claude-opus-4-5" in second.read_bytes()
