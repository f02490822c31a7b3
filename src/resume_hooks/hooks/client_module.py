"""Handle requests from the plugin's module, hooks/register.mjs, which runs in the client.

The module passes on the user's commands, and asks questions of its own. A reply can show a text,
ask the user a question, or open a session. Clients without the module use ``prompt``. This Python
code provides every text and makes every decision. The module only carries out the replies.

Invariant: only the client's own process gets a reply (see ``is_started_by_client``).
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any

from resume_hooks import questions, settings
from resume_hooks.derive.outcome import OpenedSession, Outcome, PendingAnswer, Question, Report
from resume_hooks.derive.trim.options import IN_PLACE_WORD
from resume_hooks.errors import UsageError
from resume_hooks.hooks import compaction, context_notice, hook_replies, prompt
from resume_hooks.hooks.triggers import (
    BARE_SIGN,
    REPAIR_QUESTION,
    TRIGGER_TABLE,
    Trigger,
    trigger_of_command,
)
from resume_hooks.paths import Where, is_session_id
from resume_hooks.seam import find_answers
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.session_files import session_file
from resume_hooks.shared_values import COMMAND_PREFIX
from resume_hooks.system.copy_result import NOT_COPIED, CopyResult
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.processes import is_started_by_client
from resume_hooks.system.text import escape_markdown, plain_line, plain_text

PANE_QUESTION = "pane"  # asked while the user works in the pane of /search or /sessions
# The commands that open the pane. The pane of /sessions also searches for words.
PANE_VERBS = {"search", "sessions"}
CONTEXT_NOTICE_QUESTION = "band"  # asked when the context is large enough for a notice

NEW_FOLDER_QUESTION = "moved"
"""Asked when a client starts in a repository without sessions, or when the vault may make its first
copy."""

COLD_CACHE_QUESTION = "cold"  # asked when a large session is resumed after the API's cache expired

# Asked when a session starts, if the user's account has data rules. All later questions repeat these rules.
RULES_QUESTION = "rules"

# Asked after Esc ended a wait. The argument is the command that was waiting.
QUESTION_AFTER_ABANDONED_WAIT = "left"

OFFER_QUESTION, TOOL_QUESTION = "offer", "tool"
"""The module's questions about the tool that lets the model ask for a handoff. At a start: which
tools does the model get? When the model calls the tool: what is the answer?"""

# The first is asked when the client compacts, and the second when the context is almost full.
COMPACTION_PLAN_QUESTION, FULL_CONTEXT_QUESTION = "plan", "compaction"

ANSWERED_VERBS_AND_QUESTIONS = TRIGGER_TABLE.keys() | {
    PANE_QUESTION,
    CONTEXT_NOTICE_QUESTION,
    OFFER_QUESTION,
    TOOL_QUESTION,
    FULL_CONTEXT_QUESTION,
    NEW_FOLDER_QUESTION,
    QUESTION_AFTER_ABANDONED_WAIT,
    COLD_CACHE_QUESTION,
    RULES_QUESTION,
}


QUESTION_CHOICES = {
    "handoff": (("Hand off", "yes"), ("Not now", "no")),
    "trim": (
        ("Open the trimmed copy", "yes"),
        ("Trim here, in place", IN_PLACE_WORD),
        ("Not now", "cancel"),
    ),
    REPAIR_QUESTION: (("Open the repaired copy", "yes"), ("Not now", "cancel")),
}
"""The answers that a verb's question offers: for each answer the label, and the word that it sends.

If the user chooses no answer, the last answer is used.
"""

# The maximum number of characters of a next step that the model wrote. The question to the user
# must show the whole next step.
MAX_NEXT_STEP_CHARACTERS = 400

HANDOFF_TOOL_DEFINITION = {
    "name": "handoff",
    "description": "Ask the user to continue in a new session that begins with this conversation, as far as it fits."
    " Use this tool if the user wants that, or if the context is nearly full and a piece of work is done. After the"
    " user's answer, end your turn.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "next_step": {
                "type": "string",
                "maxLength": MAX_NEXT_STEP_CHARACTERS,
                "description": "What to do next, in one sentence.",
            }
        },
    },
}
"""The tool with which the model asks the user for a handoff.

The question shows the user the text for the input box of the new session. Only the user can send
that text.
"""

CARD_LAYOUT = {
    "keys": ("Enter: table", "Esc closes"),
    "back": ("Enter: back", "Up, Down scroll · Esc closes"),
    "tall": 16,
    "wide": 80,
}
"""How the client draws the card: two labels for the Enter key, and the card's lines and columns.

The first press of Enter shows the whole table, the second closes it.
"""

REFUSAL_TEXT = "resume-hooks: only Claude Code itself gets an answer here."


def main() -> int:
    """Read a question of the plugin's module from stdin, print the answer, and return the exit status.

    No exception is raised.
    """
    event = hook_replies.read_stdin()
    if event is None:
        return 1
    command = hook_replies.text_field(event, "command")
    verb = trigger_of_command(command, "").verb
    if verb not in {
        *ANSWERED_VERBS_AND_QUESTIONS,
        COMPACTION_PLAN_QUESTION,
    } or not is_started_by_client(Where()):
        trigger_row = TRIGGER_TABLE.get(verb)
        if trigger_row and trigger_row.needs_client_module:
            advice = f"In a shell: {shell_command(verb)}"
        else:
            advice = f"Type {COMMAND_PREFIX}{verb} there."
        sys.stderr.write(
            f"{REFUSAL_TEXT} {advice if verb in ANSWERED_VERBS_AND_QUESTIONS else ''}".rstrip()
            + "\n"
        )
        return 1
    answer = answer_module_request(command, event)
    is_typed = verb in TRIGGER_TABLE and verb != REPAIR_QUESTION
    if is_typed and "text" in answer and event.get("screen") is True:
        # The client displays the text as Markdown.
        answer["text"] = escape_markdown(answer["text"])
    hook_replies.write_reply(json.dumps(answer).encode())
    return 0


def answer_module_request(command: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return the instructions with which the module answers a command that the user typed.

    ``command`` may also be one of the module's own questions, such as ``CONTEXT_NOTICE_QUESTION``.
    """
    context_notice.store_window(hook_replies.text_field(event, "session_id"), event.get("window"))
    _store_data_rules(event.get("rules"))
    has_screen = event.get("screen") is True
    trigger = trigger_of_command(
        command, hook_replies.text_field(event, "args").strip(), is_hooked=not has_screen
    )
    verb = trigger.verb
    if verb == COMPACTION_PLAN_QUESTION:
        return prompt.run_with_error_reply(
            lambda: compaction.answer_compaction(event),
            compaction.make_decline_reply(event),
            trigger,
            event,
        )
    if verb in MODULE_QUESTION_HANDLERS:
        answer_question, error_reply = MODULE_QUESTION_HANDLERS[verb]
        if has_screen:
            return prompt.run_with_error_reply(
                lambda: answer_question(event), error_reply, trigger, event
            )
        return {}
    if verb == REPAIR_QUESTION and trigger.text != "yes":
        error_reply = _make_empty_reply
    else:
        error_reply = _make_text_reply
    if prompt.is_trigger_off(verb) or (verb == REPAIR_QUESTION and not has_screen):
        return error_reply(
            f"resume-hooks: {trigger.name_of_verb(verb)} is switched off "
            f"({shell_command('config triggers_off')})."
        )
    return prompt.run_with_error_reply(
        lambda: _run_trigger(verb, trigger, event, has_screen=has_screen),
        error_reply,
        trigger,
        event,
    )


def _store_data_rules(rules: object) -> None:
    """Store the data rules of the user's account. Most clients report no rules."""
    if rules is not None:
        # Imported late because most questions do not need it.
        from resume_hooks.archive import data_rules

        with contextlib.suppress(OSError):
            data_rules.store_data_rules(rules, Where())


def _run_trigger(
    verb: str, trigger: Trigger, event: dict[str, Any], *, has_screen: bool
) -> dict[str, Any]:
    row = TRIGGER_TABLE[verb]
    if (
        row.command
        and not row.argument
        and trigger.text
        and trigger.text.lower() not in prompt.USAGE_REQUEST_WORDS
    ):
        raise UsageError(
            f"{trigger.name_of_verb(verb)} takes no words", f"Type: {trigger.name_of_verb(verb)}"
        )
    if has_screen and verb in PANE_VERBS:
        # Imported late because other commands do not need it.
        from resume_hooks.hooks.session_list import pane

        return {"pane": pane.open_pane(trigger.text)}
    if has_screen and verb == "trim" and trigger.text.partition(" ")[0] == IN_PLACE_WORD:
        return compaction.request_compaction(trigger.text, event)
    if not row.module:
        if has_screen and verb == "help":
            trigger = trigger._replace(sign=BARE_SIGN)
        return _make_text_reply(prompt.answer_trigger(trigger, event))
    outcome = prompt.run_trigger_module(
        trigger, hook_replies.text_field(event, "session_id"), event
    )
    return _make_instruction_for_outcome(outcome, trigger, event, has_screen=has_screen)


def _make_instruction_for_outcome(
    outcome: Outcome, trigger: Trigger, event: dict[str, Any], *, has_screen: bool
) -> dict[str, Any]:
    """Return the module's instruction for the outcome of a trigger.

    Without a screen, the instruction is usually only a text.
    """
    match outcome:
        case PendingAnswer(status, prompt=""):
            return {"wait": status}
        case PendingAnswer(status, model_prompt):
            return {"wait": status, "fork": model_prompt}
        case Question(question_text, _, has_in_place) if has_screen:
            offers_in_place = has_in_place and not compaction.reason_for_client_compaction(event)
            return {
                "ask": plain_text(question_text),
                "choices": _build_choices(trigger, offers_in_place),
            }
        case Report(make_text, _, table_lines) if (
            has_screen and table_lines and trigger.sign == BARE_SIGN
        ):
            lines = _make_text_reply(make_text(NOT_COPIED))["text"].split("\n")[:-1]
            return {"card": {"lines": lines, "more": table_lines, **CARD_LAYOUT}}
        case OpenedSession(receipt=receipt, remark=remark, next_step=next_step) if (
            has_screen and receipt.agent == CLAUDE_NAME
        ):
            card = prompt.make_outcome_card(outcome, _copy_nothing, is_slash=trigger.is_slash)
            may_send = bool(next_step) and event.get("by_model") is not True
            return {
                "open": receipt.session_id,
                "by_hand": plain_text(card),
                "fill": next_step,
                "send": may_send and settings.is_switched_on("handoff_sends"),
                "remark": plain_text(remark),
            }
    copy_text = _copy_nothing if trigger.sign == BARE_SIGN else prompt.copy_by_setting
    card = prompt.make_outcome_card(outcome, copy_text, is_slash=trigger.is_slash)
    if card:
        return _make_text_reply(card)
    return {}


def _build_choices(trigger: Trigger, offers_in_place: bool) -> list[list[str]]:
    """Return the answers that a trigger's question offers: for each the label and the words to type."""
    choices = []
    for label, word in QUESTION_CHOICES[trigger.verb]:
        if word != IN_PLACE_WORD:
            choices.append([label, word])
        elif offers_in_place:
            choices.append([label, f"{word} {trigger.text}".strip()])
    return choices


def _copy_nothing(text: str) -> CopyResult:  # noqa: ARG001 - in the form of prompt.copy_by_setting
    return NOT_COPIED


def _answer_pane(event: dict[str, Any]) -> dict[str, Any]:
    # Imported late because other commands do not need it.
    from resume_hooks.hooks.session_list import pane

    session_id, where = hook_replies.text_field(event, "session_id"), Where()
    if action := hook_replies.text_field(event, "key"):
        return pane.open_marked_session(action, event, session_id, where)
    return pane.update_pane(event, hook_replies.find_transcript(event, session_id, where), where)


def _make_cold_cache_reply(event: dict[str, Any]) -> dict[str, Any]:
    """Return a line about the cost of continuing without the API's cache, or ``{}`` if the cost is small."""
    # Imported late because other questions do not need it.
    from resume_hooks.hooks.session import claim_cold_cache_line

    line = claim_cold_cache_line(event)
    if line:
        return {"text": line}
    return {}


def _make_context_notice_reply(event: dict[str, Any]) -> dict[str, Any]:
    """Return the notice about the session's size, and the token count at which the module asks again.

    Unless a policy prevents it, also return when the module must compact and when it must show the
    alternatives to a compaction.
    """
    session_id, used_tokens = hook_replies.text_field(event, "session_id"), event.get("tokens")
    if not (is_session_id(session_id) and isinstance(used_tokens, int)):
        return {}
    band = context_notice.band_reply(
        session_id, hook_replies.find_transcript(event, session_id, Where()), used_tokens
    )
    if compaction.reason_for_client_compaction(event):
        return band
    return band | compaction.make_alternatives_percent_reply() | compaction.make_threshold_reply()


def _offer_tools(_: dict[str, Any]) -> dict[str, Any]:
    if _is_handoff_tool_on():
        return {"tools": [HANDOFF_TOOL_DEFINITION]}
    return {}


def _answer_tool_call(event: dict[str, Any]) -> dict[str, Any]:
    """Return the question that asks the user whether to hand the session off.

    If the event contains the user's answer (``said``), return the text for the model instead. If
    the user agreed, the reply also contains the next step (``step``).
    """
    step, user_answer = (
        plain_line(hook_replies.text_field(event, "args")).strip(),
        hook_replies.text_field(event, "said"),
    )
    if not _is_handoff_tool_on():
        return {"text": "The user has switched this off."}
    if hook_replies.text_field(event, "agent_id"):
        return {"text": "Only the main conversation can be handed off."}
    if len(step) > MAX_NEXT_STEP_CHARACTERS:
        return {
            "text": f"next_step has {len(step):,} characters, but the question can show only "
            f"{MAX_NEXT_STEP_CHARACTERS}."
        }
    if step and not _is_plain_step(step):
        return {
            "text": (
                "next_step begins with a word that /handoff reads as a size or an option: begin with another word."
            )
        }
    if user_answer == QUESTION_CHOICES["handoff"][0][1]:
        return {
            "text": "The user agreed. End your turn now. The new session opens after that.",
            "step": step,
        }
    if user_answer:
        if user_answer == QUESTION_CHOICES["handoff"][-1][1]:
            user_words = ""
        else:
            user_words = f" The user's words: {user_answer}"
        return {
            "text": f"The user said no. Continue here, and ask again only if the user wants it.{user_words}"
        }
    if step:
        step_text = f"The next step, for the input box: {step}"
    else:
        step_text = "It names no next step."
    return {
        "ask": f"The model asks to continue in a new session. {step_text}",
        "choices": [list(choice) for choice in QUESTION_CHOICES["handoff"]],
    }


def _is_plain_step(step: str) -> bool:
    """Check whether /handoff reads the whole text as a next step.

    If it does not, the text that the user confirms would differ from the text in the input box.
    """
    # Imported late because other commands do not need it.
    from resume_hooks.hooks.handoff import parse_handoff_words

    try:
        return parse_handoff_words(step).next_step == step
    except UsageError:
        return False


def _is_handoff_tool_on() -> bool:
    return settings.is_switched_on("handoff_tool") and not prompt.is_trigger_off("handoff")


def _make_new_folder_reply(event: dict[str, Any]) -> dict[str, Any]:
    """Return what the parts say about a folder without sessions, and the vault's first announcement.

    Return ``{}`` if there is nothing to say.
    """
    # Imported late because commands do not need it.
    from resume_hooks.hooks import expiring_sessions

    lines = [line(event) for line in find_answers(questions.notice_after_search_in_new_folder)]
    line = " · ".join(
        filter(None, [*lines, expiring_sessions.claim_vault_announcement(event, Where())])
    )
    if line:
        return _make_text_reply(line)
    return {}


def _reply_after_abandoned_wait(event: dict[str, Any]) -> dict[str, Any]:
    # Imported late because other commands do not need it.
    from resume_hooks.hooks import rollover
    from resume_hooks.sessions.session import Session

    command = trigger_of_command(hook_replies.text_field(event, "args"), "")
    if command.verb == "rollover":
        path = hook_replies.find_transcript(
            event, hook_replies.text_field(event, "session_id"), Where()
        )
    else:
        path = None
    if path:
        session = Session.from_file(session_file(path), Where())
        text = rollover.answer_abandoned_wait(session, Where(), command)
    else:
        text = ""
    if text:
        return {"text": text}
    return {}


def _make_pane_error_reply(text: str) -> dict[str, Any]:
    """Return an error as the first line of the pane. The pane stays open."""
    return {"head": plain_line(" ".join(_make_text_reply(text)["text"].split())), "next": ""}


def _make_text_reply(text: str) -> dict[str, Any]:
    """Return a text to show, without the plugin's name, because the client adds the name."""
    return {"text": plain_text(text).removeprefix("resume-hooks · ").removeprefix("resume-hooks: ")}


def _make_empty_reply(_: object) -> dict[str, Any]:
    return {}


MODULE_QUESTION_HANDLERS: dict[
    str, tuple[Callable[[dict[str, Any]], dict[str, Any]], Callable[[str], dict[str, Any]]]
] = {
    PANE_QUESTION: (_answer_pane, _make_pane_error_reply),
    CONTEXT_NOTICE_QUESTION: (_make_context_notice_reply, _make_empty_reply),
    OFFER_QUESTION: (_offer_tools, _make_empty_reply),
    TOOL_QUESTION: (_answer_tool_call, _make_text_reply),
    FULL_CONTEXT_QUESTION: (compaction.make_compaction_alternatives_reply, _make_empty_reply),
    NEW_FOLDER_QUESTION: (_make_new_folder_reply, _make_text_reply),
    QUESTION_AFTER_ABANDONED_WAIT: (_reply_after_abandoned_wait, _make_empty_reply),
    COLD_CACHE_QUESTION: (_make_cold_cache_reply, _make_empty_reply),
    RULES_QUESTION: (_make_empty_reply, _make_empty_reply),
}
"""For each question of the module: the function that answers, and the reply if that function fails.
"""
