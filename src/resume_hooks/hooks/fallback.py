"""Answers to triggers if the engine does not work. This module must run on Python 3.9.

The module uses only the standard library. ``>resume`` and ``>session`` still copy the session's id.
``>handoff`` reports the state of the installation. If the packages in the plugin's venv can't be
loaded (Python was updated, or packages were removed), the venv's copy of the lock file is deleted.
The installer then rebuilds the venv.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import time
from typing import Any, Dict, Optional

from resume_hooks.hooks import hook_replies
from resume_hooks.hooks.hook_replies import host_of_event
from resume_hooks.hooks.plain_cards import help_card, pasted_command_card, session_card
from resume_hooks.hooks.triggers import (
    BARE_SIGN,
    REPAIR_QUESTION,
    TRIGGER_TABLE,
    Trigger,
    recognise_trigger,
    trigger_of_command,
)
from resume_hooks.paths import is_session_id, read_json_object
from resume_hooks.system.clipboard import copy_text
from resume_hooks.system.copy_result import NOT_COPIED
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import escape_markdown, plain_text

LOCK_FILE_NAME = "requirements.lock"
_PLUGIN_ROOT = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
)
_IN_BACKGROUND_TEXT = "now, in the background, in about half a minute."
_RETRY_TEXT = "Try again in half a minute."


def main() -> None:
    """Answer the trigger in the event on stdin. If there is no trigger, write nothing. Raise no exception."""
    event = hook_replies.read_stdin()
    if event:
        trigger = recognise_trigger(hook_replies.text_field(event, "prompt"))
    else:
        trigger = None
    if event is not None and trigger is not None:
        hook_replies.write_reply(
            hook_replies.block_reply(
                answer_without_engine(trigger, hook_replies.text_field(event, "session_id")),
                host_of_event(event),
            )
        )


def write_reply_to_module() -> int:
    """Write a text as the reply to the plugin's module, and return the exit status."""
    event = hook_replies.read_stdin()
    if event is None:
        return 1
    trigger = trigger_of_command(
        hook_replies.text_field(event, "command"), hook_replies.text_field(event, "args").strip()
    )
    is_typed = trigger.verb in TRIGGER_TABLE and trigger.verb != REPAIR_QUESTION
    # The module runs in the session itself, so the user does not need the session's id.
    if trigger.verb == "resume":
        text = _describe_state_and_remedy()
    else:
        text = answer_without_engine(trigger, hook_replies.text_field(event, "session_id"))
    answer = {}
    if is_typed:
        shown_text = plain_text(text).removeprefix("resume-hooks: ")
        if event.get("screen") is True:
            shown_text = escape_markdown(shown_text)
        answer["text"] = shown_text
    hook_replies.write_reply(json.dumps(answer).encode())
    return 0


def answer_without_engine(trigger: Trigger, session_id: str) -> str:
    """Return the text to show for a trigger if the engine does not work."""
    if trigger.is_pasted_after_text:
        return pasted_command_card(trigger.text)
    if trigger.verb == "help":
        return f"{_describe_state_and_remedy()}\n\n{help_card(shell_command('--help'), trigger)}"
    if trigger.verb in {"resume", "session"} and is_session_id(session_id):
        card = session_card(
            session_id, NOT_COPIED if trigger.sign == BARE_SIGN else copy_text(session_id), trigger
        )
        if trigger.verb == "resume":
            return f"{_describe_state_and_remedy()}\n\n{card}"
        return card
    if trigger.text:
        unsent_text = f"\n\nYour text was not sent: {trigger.text}"
    else:
        unsent_text = ""
    return (
        f"resume-hooks: {trigger.name_of_verb(trigger.verb)} needs the engine. "
        f"{describe_engine_state()}{unsent_text}\n\n{_describe_retry()}"
    )


def describe_engine_state() -> str:
    """Return a sentence about the installation of the engine, from the installer's state file."""
    state = _read_installer_state()
    if state.get("state") == "installing":
        return f"The engine is being installed{_elapsed_text(state.get('started'))}."
    if state.get("state") == "failed":
        error = state.get("error") or "see install.log in the data folder of the plugin"
        return f"Installing the engine failed: {error}."
    venv = _find_plugin_venv()
    if (
        venv
        and state.get("state") == "ready"
        and os.path.isdir(venv)
        and not os.path.lexists(os.path.join(venv, LOCK_FILE_NAME))
    ):
        return f"The engine's packages no longer load; they are being reinstalled {_IN_BACKGROUND_TEXT}"
    return (
        f"The engine is not installed yet; its packages are being installed {_IN_BACKGROUND_TEXT}"
    )


def _describe_retry() -> str:
    if _read_installer_state().get("state") != "failed":
        return _RETRY_TEXT
    return f"{_describe_how_to_install()}\n\nThen try again."


def _describe_state_and_remedy() -> str:
    has_failed = _read_installer_state().get("state") == "failed"
    if has_failed:
        return f"{describe_engine_state()}\n{_describe_how_to_install()}"
    return f"{describe_engine_state()} {_RETRY_TEXT}"


def _describe_how_to_install() -> str:
    """Return the path of the installer's log, and the command that installs the engine."""
    log_path = os.path.join(os.environ.get("CLAUDE_PLUGIN_DATA", ""), "install.log")
    if os.path.isfile(log_path):
        log_line = f"Log: {log_path}\n"
    else:
        log_line = ""
    return f"{log_line}To install it now, in a shell:\n  {install_command()}"


def install_command() -> str:
    """Return the shell command that installs the engine and waits for the end of the installation."""
    engine = os.path.join(os.environ.get("CLAUDE_PLUGIN_ROOT") or _PLUGIN_ROOT, "hooks", "engine")
    return f"sh {shlex.quote(engine)} --install"


def _read_installer_state() -> Dict[str, Any]:
    data_folder = os.environ.get("CLAUDE_PLUGIN_DATA")
    if data_folder:
        return read_json_object(os.path.join(data_folder, "install.json"))
    return {}


def _elapsed_text(start_time: object) -> str:
    """Return the time since the installer began, for example ``, for 12 s so far``."""
    if not isinstance(start_time, (int, float)) or not 0 < start_time < time.time():
        return ""
    return f", for {round(time.time() - start_time)} s so far"


def mark_venv_broken() -> None:
    """Mark the plugin's venv as broken, so that the installer rebuilds it. Do nothing in any other venv."""
    venv = _find_plugin_venv()
    if venv and os.path.realpath(sys.prefix) == os.path.realpath(venv):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(venv, LOCK_FILE_NAME))


def _find_plugin_venv() -> Optional[str]:
    data_folder = os.environ.get("CLAUDE_PLUGIN_DATA")
    if data_folder:
        return os.path.join(data_folder, "venv")
    return None
