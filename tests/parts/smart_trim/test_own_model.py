"""Tests of ``/trim --smart`` inside the client.

The engine sends the instructions for the session's own model, and writes only after a yes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import clock, seam
from resume_hooks.hooks import confirmations
from resume_hooks.hooks.client_module import answer_module_request
from resume_hooks.parts.smart_trim.plan import CHILD_KIND
from tests.builders import SESSION, ConfigHome, line, user
from tests.derive.trim.sessions import (
    LONG_OUTPUT,
    Chain,
    read_file_records,
    read_records_by_uuid,
    write_project_session,
)
from tests.hooks.conftest import TypePrompt, list_children
from tests.parts.smart_trim.models import NUMBER_PATTERN, choice_row

OWN_MODEL_NAME = "claude-opus-4-5"
MODEL_USAGE = {
    "input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 41_000, "cache_creation_input_tokens": 1_300,
}  # fmt: skip
USAGE_TEXT = "41,000 tokens read from the cache, 1,300 written to it, 11 uncached, 7 in the answer"


@pytest.fixture
def warm_session(config_home: ConfigHome) -> Path:
    """Write a session in which the model has just answered after two large outputs. Return its path."""
    chain = (
        Chain()
        .ask("go")
        .call_with_result("t1", "Bash", LONG_OUTPUT * 4, command="ls")
        .call_with_result("t2", "Bash", LONG_OUTPUT * 8, command="make")
    )
    chain.add_short_turns(4).answer(
        "Half of it is done.", tokens={**MODEL_USAGE, "cache_creation": {}}, model=OWN_MODEL_NAME
    )
    chain.rows[-1]["timestamp"] = clock.now()
    return write_project_session(config_home, chain)


def module_reply(arguments: str = "--smart", **more_fields: Any) -> dict[str, Any]:
    """Return the engine's reply to ``/trim`` with ``arguments``."""
    event = {"session_id": SESSION, "screen": True, "args": arguments, **more_fields}
    reply = answer_module_request("trim", event)
    json.dumps(reply)
    return reply


def reply_in_warm_client(arguments: str = "--smart", **report_fields: Any) -> dict[str, Any]:
    """Return the engine's reply to ``/trim`` while the module waits for an answer of the session's model.

    ``report_fields`` has the fields of the module's report on that model.
    """
    return module_reply(arguments, waiting=True, forked={"model": OWN_MODEL_NAME, **report_fields})


def reply_after_choices(*choices: dict[str, Any], arguments: str = "--smart") -> dict[str, Any]:
    """Return the engine's reply after the model made these choices."""
    text = f"Here you are.\n```json\n{json.dumps({'choices': choices})}\n```"
    return reply_in_warm_client(arguments, isAnswered=True, text=text, usage=MODEL_USAGE)


def test_a_yes_writes_the_shown_plan(warm_session: Path) -> None:
    """After a yes, the child is written exactly as the question showed it.

    Before the yes, no child is written. The parent is unchanged, and a second yes opens the same
    child.
    """
    before = warm_session.read_bytes()
    assert set(module_reply()) == {"wait"}
    asked = reply_in_warm_client("--smart keep the build")
    assert asked["wait"] == "asking this session's model (42,300 tokens cached): up to two minutes"
    assert "keep the build" in asked["fork"]
    assert "No tool is allowed here" in asked["fork"]
    assert NUMBER_PATTERN.findall(asked["fork"]) == ["1", "2"]
    shown = reply_after_choices(
        choice_row(2, "a build"), choice_row(3), choice_row(2), arguments="--smart keep the build"
    )
    assert [word for _, word in shown["choices"]] == ["yes", "cancel"]
    for words in (
        "saves about",
        f"chosen by {OWN_MODEL_NAME}: 1; the largest of them:",
        "a build · Bash make",
        f"it took {USAGE_TEXT}",
        "1 named contents that were not shown to it, 1 repeated an earlier choice",
    ):
        assert words in shown["ask"]
    assert list_children(warm_session) == []
    made = module_reply("yes")
    (child,) = list_children(warm_session)
    assert made["open"] == child.stem
    old, new = read_records_by_uuid(warm_session), read_records_by_uuid(child)
    assert {
        uuid for uuid in old if old[uuid]["message"]["content"] != new[uuid]["message"]["content"]
    } == {"c4"}
    assert '"a build"' in str(new["c4"])
    assert read_file_records(child)[0]["continue_metadata"]["continuation_type"] == "smart-trim"
    assert warm_session.read_bytes() == before
    again = module_reply("yes")
    assert (again["open"], list_children(warm_session)) == (child.stem, [child]), (
        "one question makes one child"
    )


@pytest.mark.parametrize("reason", ["named", "another", "cold", "unknown"])
def test_the_own_model_is_not_asked_without_a_warm_cache(
    warm_session: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    """The session's own model is not asked if the user set another model or the cache is cold.

    The reply states the reason and the command that asks a model in a shell.
    """
    if reason == "named":
        monkeypatch.setenv("RESUME_HOOKS_SUMMARY_MODEL", "haiku")
    if reason == "cold":
        monkeypatch.setattr(clock, "now", lambda: "2099-01-01T00:00:00.000Z")
    said = reply_in_warm_client(
        "--smart keep it",
        model={"another": "claude-sonnet-4-5", "unknown": None}.get(reason, OWN_MODEL_NAME),
    )
    assert set(said) == {"text"}
    assert ("summary_model names haiku" if reason == "named" else "its cache is cold") in said[
        "text"
    ]
    assert re.search(
        rf"To let a model choose, run in a shell: .* trim --smart {SESSION} -p 'keep it'",
        said["text"],
    )


@pytest.mark.parametrize(
    ("model_report", "reason"),
    [
        (
            {"isAnswered": False, "reason": "nothing-to-fork"},
            "gave no answer: nothing has been sent to it since the session was opened here",
        ),
        (
            {"isAnswered": False, "reason": "empty-reply"},
            f"gave no answer: empty-reply; it took {USAGE_TEXT}",
        ),
        (
            {"isAnswered": True, "text": "I can't help with [1, 2]."},
            "answered in prose where JSON was asked for",
        ),
        ({"isAnswered": True, "text": '{"choices": "all"}'}, "does not fit the schema: choices: "),
        ({"reason": "late"}, "did not answer within 120 s"),
    ],
    ids=["resumed", "a-tool-call", "prose", "form", "late"],
)
def test_a_missing_answer_makes_no_child(
    warm_session: Path, model_report: dict[str, Any], reason: str
) -> None:
    """If the model gives no usable answer, no child is made, and no question is open.

    The reply has the reason, the used tokens and a command for the shell.
    """
    assert reply_in_warm_client()["fork"]
    said = reply_in_warm_client(**model_report, usage=MODEL_USAGE if "it took" in reason else {})
    assert set(said) == {"text"}
    assert (
        f"The model chose nothing: {OWN_MODEL_NAME} {reason}".replace(
            f"{OWN_MODEL_NAME} does", f"the answer from {OWN_MODEL_NAME} does"
        )
        in said["text"]
    )
    assert f"trim --smart {SESSION}" in said["text"]
    assert "nothing to confirm" in module_reply("yes")["text"]
    assert list_children(warm_session) == []


def test_an_empty_choice_makes_no_child(warm_session: Path) -> None:
    """If the model chooses no content, no child is made, and the used tokens are reported."""
    reply_in_warm_client()
    said = reply_after_choices()["text"]
    assert "not worth a new session" in said
    assert USAGE_TEXT in said
    assert "nothing to confirm" in module_reply("yes")["text"]


def change_output(session: Path) -> None:
    """Change the first output, so that the offered numbers no longer belong to the same contents."""
    session.write_bytes(session.read_bytes().replace(b"long output line", b"LONG OUTPUT LINE", 1))


@pytest.mark.parametrize("change_time", ["asked", "shown"])
def test_a_session_changed_meanwhile_makes_no_child(warm_session: Path, change_time: str) -> None:
    """If the session changed after the request or the question, no child is made."""
    reply_in_warm_client()
    if change_time == "asked":
        change_output(warm_session)
    said = reply_after_choices(choice_row(2))
    if change_time == "shown":
        assert said["choices"]
        change_output(warm_session)
        said = module_reply("yes")
    assert (
        "The session has changed since the model was asked, so nothing was written" in said["text"]
    )
    assert list_children(warm_session) == []


def test_the_child_includes_records_added_after_the_request(warm_session: Path) -> None:
    """Records that are added after the model was asked are included in the child."""
    reply_in_warm_client()
    with warm_session.open("ab") as stream:
        stream.write(line({"type": "system", "subtype": "note", "sessionId": SESSION}) + b"\n")
    assert reply_after_choices(choice_row(2))["choices"]
    with warm_session.open("ab") as stream:
        stream.write(line({"type": "system", "subtype": "note", "sessionId": SESSION}) + b"\n")
    assert module_reply("yes")["open"] == list_children(warm_session)[0].stem


def test_a_yes_answers_the_newest_preview(warm_session: Path) -> None:
    """The answer "yes" applies to the newest preview.

    While the model is being asked, no question is open.
    """
    module_reply("--threshold 100")
    reply_in_warm_client()
    assert "nothing to confirm" in module_reply("yes")["text"]
    reply_after_choices(choice_row(2, "a build"))
    module_reply("--threshold 100")
    module_reply("yes")
    (child,) = list_children(warm_session)
    assert read_file_records(child)[0]["continue_metadata"]["continuation_type"] == "trim"


def test_a_yes_without_the_stored_plan_makes_no_child(warm_session: Path) -> None:
    """If the stored plan is missing, the answer "yes" makes no child."""
    reply_in_warm_client()
    reply_after_choices(choice_row(2))
    confirmations.consume_question(SESSION, CHILD_KIND)
    assert "so nothing was written" in module_reply("yes")["text"]
    assert list_children(warm_session) == []


def test_esc_during_the_request_gives_an_empty_reply(warm_session: Path) -> None:
    """After Esc during the request, the reply is empty, because no child was written."""
    reply_in_warm_client()
    assert (
        answer_module_request("left", {"session_id": SESSION, "screen": True, "args": "trim"}) == {}
    )


def test_without_the_module_the_shell_command_is_shown(
    warm_session: Path, type_prompt: TypePrompt
) -> None:
    """Without the module or a screen, ``>trim --smart`` shows a command for the shell."""
    for text in (
        type_prompt(">trim --smart keep what I cancel, yes"),
        module_reply("--smart", screen=False)["text"],
    ):
        assert "No model is available here" in text
        assert f"trim --smart {SESSION}" in text


@pytest.mark.parametrize(
    "is_installed", [True, False], ids=["an option behind it", "without the part"]
)
def test_unknown_options_are_refused(
    warm_session: Path, monkeypatch: pytest.MonkeyPatch, *, is_installed: bool
) -> None:
    """``/trim --smart`` refuses other options after ``--smart``.

    If the part ``smart_trim`` is not installed, ``--smart`` itself is refused as unknown.
    """
    monkeypatch.setattr(seam, "is_installed", lambda _: is_installed)
    said = (
        "takes plain words, not options" if is_installed else "'--smart' is not an option of /trim"
    )
    assert said in module_reply("--smart --keep-recent 3" if is_installed else "--smart")["text"]


def test_a_description_contains_no_secret(warm_session: Path) -> None:
    """A secret in the model's description is removed from the question and from the child."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    reply_in_warm_client()
    assert secret not in reply_after_choices(choice_row(2, f"the token {secret}"))["ask"]
    module_reply("yes")
    assert "the token (secret removed" in list_children(warm_session)[0].read_text(encoding="utf-8")


def test_a_session_without_contents_asks_no_model(config_home: ConfigHome) -> None:
    """If no content can be offered, the model is not asked."""
    chain = Chain().ask("go").answer("done", tokens={**MODEL_USAGE}, model=OWN_MODEL_NAME)
    chain.rows[-1]["timestamp"] = clock.now()
    chain.rows.append(user("on", uuid="x", parent="c1", ts=clock.now()))
    write_project_session(config_home, chain)
    assert "There is nothing for a model to choose" in reply_in_warm_client()["text"]


def test_the_model_sees_only_the_largest_contents(config_home: ConfigHome) -> None:
    """The model sees the 60 largest contents, and the number of others is reported."""
    chain = Chain()
    for number in range(90):
        chain.ask(f"do {number}").call_with_result(
            f"t{number}",
            "Bash",
            f"{number} {LONG_OUTPUT * (1 + number % 2)}",
            command=f"r {number}",
        )
    chain.add_short_turns(4).answer("Done.", tokens={**MODEL_USAGE}, model=OWN_MODEL_NAME)
    chain.rows[-1]["timestamp"] = clock.now()
    write_project_session(config_home, chain)
    assert len(NUMBER_PATTERN.findall(reply_in_warm_client()["fork"])) == 60
    assert (
        "30 smaller pieces of content were not shown to the model and are kept."
        in reply_after_choices(*map(choice_row, range(1, 61)))["ask"]
    )
