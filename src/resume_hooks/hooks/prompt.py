"""The hook UserPromptSubmit: decide whether a prompt is a trigger, and answer a trigger.

Invariant: a prompt that is not a trigger always passes. If a trigger fails, the user sees the error
and a remedy. Modules are imported in functions, so that each trigger loads only the modules that it
needs. For example, ``>session`` does not load the modules that read transcripts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from resume_hooks import settings
from resume_hooks.errors import (
    NothingToHandOff,
    ResumeHooksError,
    SessionNotFound,
    convert_disk_error,
)
from resume_hooks.hooks import hook_replies
from resume_hooks.hooks.hook_replies import host_of_event
from resume_hooks.hooks.plain_cards import (
    help_card,
    pasted_command_card,
    refusal_card,
    session_card,
    usage_card,
)
from resume_hooks.hooks.triggers import (
    TRIGGER_TABLE,
    TYPED_SIGN,
    Trigger,
    find_trigger_name,
    recognise_trigger,
)
from resume_hooks.paths import Where, is_session_id

if TYPE_CHECKING:
    from resume_hooks.derive.outcome import Outcome
    from resume_hooks.system.copy_result import CopyResult

T = TypeVar("T")

USAGE_REQUEST_WORDS = {"help", "--help", "-h"}
"""Words that ask for a trigger's usage if nothing follows them. The trim trigger handles these
words itself."""


def main() -> None:
    """Answer the trigger in the event on stdin. If there is no trigger, write nothing. Raise no exception."""
    event = hook_replies.read_stdin()
    if event:
        trigger = recognise_trigger(hook_replies.text_field(event, "prompt"))
    else:
        trigger = None
    if event is None or trigger is None:
        return
    host = host_of_event(event)
    reason = card_of_trigger(
        trigger._replace(is_slash=trigger.is_slash or host.empties_input), event
    )
    if reason:
        hook_replies.write_reply(hook_replies.block_reply(reason, host))


def card_of_trigger(trigger: Trigger, event: dict[str, Any]) -> str:
    """Return the text to show for a trigger, or the error's text if the trigger fails.

    Return ``""`` if the user switched the trigger off.
    """
    return run_with_error_reply(lambda: answer_trigger(trigger, event), str, trigger, event)


def run_with_error_reply(
    run: Callable[[], T],
    reply_to_error: Callable[[str], T],
    trigger: Trigger,
    event: dict[str, Any],
) -> T:
    """Return the result of ``run``.

    If ``run`` fails, return the result of ``reply_to_error``, which takes the error's text.
    """
    try:
        return run()
    except Exception as error:  # noqa: BLE001 - the outermost rim: a trigger ends in a sentence, never in a trace
        return reply_to_error(describe_failure(error, trigger, event))


def describe_failure(error: Exception, trigger: Trigger, event: dict[str, Any]) -> str:
    """Return the text that tells the user about an error, with a remedy."""
    error = convert_disk_error(error) or error
    if isinstance(error, ResumeHooksError):
        from resume_hooks.system.invocation import format_remedy

        remedy = error.remedy
        # After ``/clear`` there is nothing to hand off yet. The remedy names the session before
        # ``/clear``.
        if isinstance(error, NothingToHandOff):
            from resume_hooks.sessions.link_log import read_links

            session_id = hook_replies.text_field(event, "session_id")
            parents = []
            for link in read_links(Where()):
                if link.child_id == session_id:
                    parents.append(link.parent_id)
            if parents:
                remedy = f"The session before it: /resume {parents[-1]}"
        return refusal_card(
            trigger.replace_trigger_names(error.message),
            trigger.replace_trigger_names(format_remedy(remedy)),
            _describe_typed_text(trigger.text),
        )
    # The plugin's venv is damaged, or was installed for an earlier version.
    if isinstance(error, ModuleNotFoundError):
        from resume_hooks.hooks import fallback

        fallback.mark_venv_broken()
        return fallback.answer_without_engine(trigger, hook_replies.text_field(event, "session_id"))
    return _describe_bug(error, trigger)


def is_trigger_off(verb: str) -> bool:
    """Check whether the user switched a trigger off with the setting ``triggers_off``."""
    disabled_triggers = settings.load_settings()["triggers_off"].value
    return isinstance(disabled_triggers, tuple) and verb in map(
        find_trigger_name, disabled_triggers
    )


def answer_trigger(trigger: Trigger, event: dict[str, Any]) -> str:
    """Return the text to show for a trigger, or ``""`` if the user switched the trigger off.

    Raise ResumeHooksError if the trigger fails.
    """
    if is_trigger_off(trigger.verb):
        return ""
    session_id = hook_replies.text_field(event, "session_id")
    if trigger.is_pasted_after_text:
        return pasted_command_card(trigger.text, is_busy=_is_busy(event, session_id))
    if trigger.verb == "help":
        from resume_hooks.system.invocation import shell_command

        return help_card(shell_command("--help"), trigger)
    _require_session_id(session_id)
    if trigger.verb == "session":
        return session_card(session_id, copy_by_setting(session_id), trigger)
    outcome = run_trigger_module(trigger, session_id, event)
    return make_outcome_card(outcome, copy_by_setting, is_slash=trigger.is_slash)


def run_trigger_module(trigger: Trigger, session_id: str, event: dict[str, Any]) -> Outcome:
    """Run a trigger that reads a transcript, and return its outcome. Raise ResumeHooksError if it fails."""
    from resume_hooks.derive.outcome import make_text_report
    from resume_hooks.hooks.request import Request
    from resume_hooks.sessions.agents.registry import find_other_agents_session

    row = TRIGGER_TABLE[trigger.verb]
    asks_usage = trigger.verb != "trim" and (
        not (row.argument and row.is_read_only) or trigger.verb == "resume"
    )
    if asks_usage and trigger.text.lower() in USAGE_REQUEST_WORDS:
        return make_text_report(usage_card(trigger))
    _require_session_id(session_id)
    module = importlib.import_module(row.module)
    where, in_subagent = Where(), bool(hook_replies.text_field(event, "agent_id"))
    path = hook_replies.find_transcript(event, session_id, where)
    if path is None and (foreign_session := find_other_agents_session(session_id, where)):
        path = foreign_session.path
    can_wait = event.get("screen") is True and event.get("waiting") is not True
    forked = event.get("forked")
    if not isinstance(forked, dict):
        forked = None
    request = Request(trigger, session_id, path, where, in_subagent, forked, can_wait)
    outcome: Outcome = module.answer_request(request)
    return outcome


def _require_session_id(session_id: str) -> None:
    if not is_session_id(session_id):
        raise SessionNotFound("Claude Code sent no session id", "Send a prompt first.")


def make_outcome_card(
    outcome: Outcome, copy_text: Callable[[str], CopyResult], *, is_slash: bool
) -> str:
    """Return the card for an outcome. ``copy_text`` copies text to the clipboard.

    If no session was written, raise the ResumeHooksError that gives the reason.
    """
    from resume_hooks.derive.outcome import (
        NothingWritten,
        OpenedSession,
        PendingAnswer,
        Question,
        Report,
    )

    match outcome:
        case OpenedSession(receipt=receipt, plan=plan, action_phrase=action, facts=facts):
            # Imported late because only a new child needs it.
            from resume_hooks.hooks.child_cards import child_card

            parent = None if plan is None else plan.draft.loaded_parent
            copied = copy_text(receipt.client_command)
            return child_card(action, receipt, copied, facts, is_slash=is_slash, parent=parent)
        case Report(make_text, text_to_copy):
            return make_text(copy_text(text_to_copy))
        case Question(_, card):
            return card
        case PendingAnswer(status):
            return status
        case NothingWritten():
            if outcome.reason is not None:
                raise outcome.reason
            return ""


def copy_by_setting(text: str) -> CopyResult:
    """Copy a text to the clipboard, with the method from the setting ``clipboard``."""
    from resume_hooks.system.clipboard import copy_text

    if not text:
        return copy_text(text, method="none")
    return copy_text(text, method=str(settings.load_settings()["clipboard"].value))


def _is_busy(event: dict[str, Any], session_id: str) -> bool:
    """Check whether the model is working. If it is, a card suggests nothing that would end the turn."""
    if is_session_id(session_id):
        path = hook_replies.find_transcript(event, session_id, Where())
    else:
        path = None
    if path is None:
        return False
    # Imported late because only a command pasted after other text needs it.
    from resume_hooks.hooks.child_cards import is_model_busy

    return is_model_busy(path)


def _describe_bug(error: Exception, trigger: Trigger) -> str:
    from resume_hooks.system import bug_log  # Imported late because only a bug needs it.
    from resume_hooks.system.invocation import shell_command
    from resume_hooks.version import __version__  # Imported late because only a bug needs it.

    bug_log.log_bug(f">{trigger.verb}", __version__, error)
    if trigger.text:
        typed_text = f"\n\n{_describe_typed_text(trigger.text)}"
    else:
        typed_text = ""
    hint = " Put a space before > to send it as it is." if trigger.sign == TYPED_SIGN else ""
    return (
        f"resume-hooks failed ({type(error).__name__}: {error}). It changed none of your sessions or files; "
        f"if it created a new session first, that session is in `{shell_command('sessions')}`.{typed_text}\n\n"
        f"Your prompt was not sent.{hint}\n"
        f"To see what is wrong, in a shell:\n  {shell_command('doctor')}\n\nThen try again."
    )


def _describe_typed_text(text: str) -> str:
    """Return a line with the user's words, which the client removed from the input box."""
    if text:
        return f"Your text: {text}"
    return ""
