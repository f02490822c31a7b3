"""Tests that an answer writes the names of triggers with the prefix that the user typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from resume_hooks.hooks import fallback, prompt, triggers
from resume_hooks.hooks.client_module import answer_module_request
from resume_hooks.hooks.triggers import (
    BARE_SIGN,
    TRIGGER_TABLE,
    TYPED_SIGN,
    recognise_trigger,
    trigger_of_command,
)
from resume_hooks.seam import Trigger as Row
from resume_hooks.shared_values import COMMAND_PREFIX, PLUGIN_NAME
from resume_hooks.system import clipboard
from resume_hooks.system.copy_result import NOT_COPIED, CopyResult
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session
from tests.hooks.test_trim import turns_with_large_files

CLIENT_COMMANDS = {"resume", "clear", "compact"}
"""The client's own commands that answers mention."""

COMMAND_ARGUMENTS = (
    "",
    "yes",
    "help",
    "cancel",
    "y",
    "yes now",
    "--nonsense",
    "prompt",
    "--all nothingatall",
    "go on with it",
)
NAMED_COMMAND_PATTERN = re.compile(
    r"(?<![\w./>~-])(?P<sign>>|/resume-hooks:|/)(?P<name>[a-z][a-z-]+)(?![\w/.:-])"
)
MISSING_SESSION_ID = session_id(8)
SIGNS_AND_COMMANDS = [
    *((TYPED_SIGN, f">{name}") for name in sorted(triggers.TYPED_VERBS)),
    *((COMMAND_PREFIX, f"resume-hooks:{name}") for name in sorted(triggers.TYPED_VERBS)),
    *((BARE_SIGN, row.command) for row in TRIGGER_TABLE.values() if row.command),
]


@pytest.fixture(autouse=True)
def trimmable_sessions(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a session that is worth trimming and one that is not, and turn the clipboard off."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    monkeypatch.setenv("PATH", "")
    write_session(config_home.project(), SESSION, turns_with_large_files())
    write_session(config_home.project(), session_id(7), conversation(2))


def list_answers(command: str, arguments: str) -> Iterator[str]:
    """Yield every answer to a command with these arguments: the hook's, the module's and the fallback's."""
    for session in (SESSION, session_id(7), MISSING_SESSION_ID, "no id"):
        event = {"session_id": session, "args": arguments, "waiting": True}
        if command.startswith(TYPED_SIGN):
            trigger = recognise_trigger(f"{command} {arguments}")
            if trigger is None:
                return
            yield prompt.card_of_trigger(trigger, event)
        else:
            trigger = trigger_of_command(command, arguments)
            yield from map(str, _texts_of_reply(answer_module_request(command, event)))
            yield from map(
                str, _texts_of_reply(answer_module_request(command, {**event, "screen": True}))
            )
        yield fallback.answer_without_engine(trigger, session)
        yield prompt.run_with_error_reply(_raise_bug, str, trigger, event)


def _texts_of_reply(reply: dict[str, object]) -> list[object]:
    return [reply.get(key, "") for key in ("text", "ask", "by_hand", "remark", "wait")]


def _raise_bug() -> str:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("sign", "command"), SIGNS_AND_COMMANDS, ids=[command for _, command in SIGNS_AND_COMMANDS]
)
def test_every_answer_uses_the_typed_name(sign: str, command: str) -> None:
    """An answer writes the names of other triggers with the prefix that the user typed, such as ``>``.

    The other prefixes are ``/resume-hooks:`` and ``/``. The answer contains only names of triggers
    that exist.
    """
    known = {
        row.command
        for row in TRIGGER_TABLE.values()
        if row.command
        and (sign == BARE_SIGN or row.needs_client_module or command == f"{PLUGIN_NAME}:help")
    }
    for text in COMMAND_ARGUMENTS:
        for said in list_answers(command, text):
            for found in NAMED_COMMAND_PATTERN.finditer(said):
                if found["sign"] == BARE_SIGN:
                    assert found["name"] in known | CLIENT_COMMANDS, said
                else:
                    assert (found["sign"], found["name"] in triggers.TYPED_VERBS) == (sign, True), (
                        said
                    )


@pytest.mark.parametrize(
    "row", [row for row in TRIGGER_TABLE.values() if row.command], ids=lambda row: row.command
)
def test_a_command_without_prefix_copies_nothing(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command of the client's module, such as ``/full``, copies no text to the clipboard.

    The older command ``/resume-hooks:full`` does.
    """
    copied: list[str] = []

    def record_copy(text: str, **_: object) -> CopyResult:
        copied.extend([text] if text else [])
        return NOT_COPIED

    monkeypatch.setattr(clipboard, "copy_text", record_copy)
    monkeypatch.setattr(fallback, "copy_text", record_copy)
    event = {"session_id": SESSION, "args": "", "waiting": True}
    for screen in (True, False):
        json.dumps(answer_module_request(row.command, {**event, "screen": screen}))
    fallback.answer_without_engine(trigger_of_command(row.command, ""), SESSION)
    assert copied == []
    if row.name in {"resume", "handoff", "recall"}:
        answer_module_request(f"resume-hooks:{row.name}", event)
        assert len(copied) == 1


def test_each_name_belongs_to_one_command() -> None:
    """No two triggers have the same command in the module."""
    bare = [row.command for row in TRIGGER_TABLE.values() if row.command]
    assert len(bare) == len(set(bare))
