"""Commands in clients that load hooks/register.mjs: show a text, ask a question, open a session.

Others: ``prompt``.

Invariant: only the client's own process is answered (see ``is_asked_by_client``), and every word
and every judgement is here; hooks/register.mjs asks and applies.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any

from resume_hooks import questions, settings
from resume_hooks.derive.outcome import Opened, Outcome, Question, Report, Waiting
from resume_hooks.errors import UsageError
from resume_hooks.hooks import compaction, context_notice, prompt, reply
from resume_hooks.hooks.compaction import HERE
from resume_hooks.hooks.triggers import BARE, ROWS, UNASKED, Trigger, trigger_of_command
from resume_hooks.paths import Where, is_session_id
from resume_hooks.seam import answers
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.session_files import session_file
from resume_hooks.shared_values import SLASH
from resume_hooks.system.copy_result import NOT_COPIED, Copied
from resume_hooks.system.invocation import in_shell
from resume_hooks.system.processes import is_asked_by_client
from resume_hooks.system.text import plain_line, plain_text

PANE = "pane"  # what the module asks with while the pane of /search and /sessions is open
PANED = {"search", "sessions"}  # what opens it; words of /sessions are searched, too
BAND = "band"  # what it asks with once a session is large enough to be looked at

MOVED = "moved"
"""What it asks with at a start in a repository's folder without sessions, or before the vault's first copy."""

COLD = "cold"  # what it asks with when a large session is resumed that no cache holds

RULES = "rules"  # what it asks with at a start under an account's data rules, which it tells with every question

LEFT = "left"  # what it asks with once Esc ended what was waited for, and which command that was

OFFER, TOOL = "offer", "tool"
"""What it asks with at a client's start, for the tools that the model may have, and when the model calls ours."""

PLAN, FULL = (
    "plan",
    "compaction",
)  # what it asks with when the client compacts, and as the context fills

VERBS = ROWS.keys() | {PANE, BAND, OFFER, TOOL, FULL, MOVED, LEFT, COLD, RULES}


CHOICES = {
    "handoff": (("Hand off", "yes"), ("Not now", "no")),
    "trim": (
        ("Open the trimmed copy", "yes"),
        ("Trim here, in place", HERE),
        ("Not now", "cancel"),
    ),
    UNASKED: (("Open the repaired copy", "yes"), ("Not now", "cancel")),
}
"""What answers a verb's question, and the word that says it.

The last one is also what no answer means.
"""

MOST_STEP = (
    400  # characters of a next step that the model asks for: all of it has to stand in the question
)

HANDOFF_TOOL = {
    "name": "handoff",
    "description": "Ask the user to continue in a new session that opens with what was said here, as far as it fits:"
    " where they want that, or where the context is nearly full and a piece of work is done. They confirm it; then end"
    " your turn.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "next_step": {
                "type": "string",
                "maxLength": MOST_STEP,
                "description": "What to do next, in one sentence.",
            }
        },
    },
}
"""A tool by which the model asks for a handoff. The person confirms it with all that it says before them: what is shown
in the question is, letter for letter, what stands in the box of the fresh session, and is never sent by itself."""

CARD = {
    "keys": ("Enter: table", "Esc closes"),
    "back": ("Enter: back", "Up, Down scroll · Esc closes"),
    "tall": 16,
    "wide": 80,
}
"""What Enter does: more than a card says, and the way back.

The lines and columns that the card asks for.
"""

REFUSED = "resume-hooks: only Claude Code itself is answered here."


def main() -> int:
    """Answer the module's question on stdin; never raises. Returns the exit status."""
    event = reply.read_stdin()
    if event is None:
        return 1
    command = reply.field(event, "command")
    verb = trigger_of_command(command, "").verb
    if verb not in {*VERBS, PLAN} or not is_asked_by_client(Where()):
        row = ROWS.get(verb)
        if row and row.inside:
            instead = f"In a shell: {in_shell(verb)}"
        else:
            instead = f"Type {SLASH}{verb} there."
        sys.stderr.write(f"{REFUSED} {instead if verb in VERBS else ''}".rstrip() + "\n")
        return 1
    reply.write_reply(json.dumps(answer_module(command, event)).encode())
    return 0


def answer_module(command: str, event: dict[str, Any]) -> dict[str, Any]:
    """The module's instructions, in its own form, for a typed command or for a question of the module itself."""
    context_notice.learn(reply.field(event, "session_id"), event.get("window"))
    _learn_rules(event.get("rules"))
    on_screen = event.get("screen") is True
    trigger = trigger_of_command(command, reply.field(event, "args").strip(), hooked=not on_screen)
    verb = trigger.verb
    if verb == PLAN:
        return prompt.run_guarded(
            lambda: compaction.answer_compaction(event),
            compaction.decline_compaction(event),
            trigger,
            event,
        )
    if verb in UNTYPED:
        work, told = UNTYPED[verb]
        if on_screen:
            return prompt.run_guarded(lambda: work(event), told, trigger, event)
        return {}
    if verb == UNASKED and trigger.text != "yes":
        told = _empty_reply
    else:
        told = _text_reply
    if prompt.is_trigger_off(verb) or (verb == UNASKED and not on_screen):
        return told(
            f"resume-hooks: {trigger.name(verb)} is switched off "
            f"({in_shell('config triggers_off')})."
        )
    return prompt.run_guarded(
        lambda: _run_trigger(verb, trigger, event, on_screen=on_screen), told, trigger, event
    )


def _learn_rules(told: object) -> None:
    """Keep the account's data rules, which the client tells; most clients tell none."""
    if told is not None:
        from resume_hooks.archive import data_rules  # nothing to the other questions

        with contextlib.suppress(OSError):
            data_rules.note_data_rules(told, Where())


def _run_trigger(
    verb: str, trigger: Trigger, event: dict[str, Any], *, on_screen: bool
) -> dict[str, Any]:
    row = ROWS[verb]
    if row.bare and not row.argument and trigger.text and trigger.text.lower() not in prompt.HELP:
        raise UsageError(f"{trigger.name(verb)} takes no words", f"Type: {trigger.name(verb)}")
    if on_screen and verb in PANED:
        from resume_hooks.hooks.session_list import pane  # nothing to the other commands

        return {"pane": pane.open_pane(trigger.text)}
    if on_screen and verb == "trim" and trigger.text.partition(" ")[0] == HERE:
        return compaction.begin_in_place(trigger.text, event)
    if not row.lane:
        if on_screen and verb == "help":
            trigger = trigger._replace(sign=BARE)
        return _text_reply(prompt.answer_trigger(trigger, event))
    outcome = prompt.outcome_of_lane(trigger, reply.field(event, "session_id"), event)
    return _draw_instruction(outcome, trigger, event, on_screen=on_screen)


def _draw_instruction(
    outcome: Outcome, trigger: Trigger, event: dict[str, Any], *, on_screen: bool
) -> dict[str, Any]:
    """The module's instruction for an outcome; where nobody sees the screen, mostly a text."""
    match outcome:
        case Waiting(shown, prompt=""):
            return {"wait": shown}
        case Waiting(shown, asked):
            return {"wait": shown, "fork": asked}
        case Question(short, _, in_place) if on_screen:
            offers_in_place = in_place and not compaction.why_not_asked(event)
            return {
                "ask": plain_text(short),
                "choices": _choices_of_question(trigger, offers_in_place),
            }
        case Report(text, _, more) if on_screen and more and trigger.sign == BARE:
            lines = _text_reply(text(NOT_COPIED))["text"].split("\n")[:-1]
            return {"card": {"lines": lines, "more": more, **CARD}}
        case Opened(receipt=receipt, remark=remark, next_step=next_step) if (
            on_screen and receipt.agent == NAME
        ):
            card = prompt.draw_card(outcome, _copy_nothing, slash=trigger.slash)
            may_send = bool(next_step) and event.get("by_model") is not True
            return {
                "open": receipt.session_id,
                "by_hand": plain_text(card),
                "fill": next_step,
                "send": may_send and settings.is_on("handoff_sends"),
                "remark": plain_text(remark),
            }
    copy = _copy_nothing if trigger.sign == BARE else prompt.copy_by_setting
    card = prompt.draw_card(outcome, copy, slash=trigger.slash)
    if card:
        return _text_reply(card)
    return {}


def _choices_of_question(trigger: Trigger, offers_in_place: bool) -> list[list[str]]:
    """The labels of the answers to a trigger's question, each with the words that the module types for it."""
    choices = []
    for label, word in CHOICES[trigger.verb]:
        if word != HERE:
            choices.append([label, word])
        elif offers_in_place:
            choices.append([label, f"{word} {trigger.text}".strip()])
    return choices


def _copy_nothing(text: str) -> Copied:  # noqa: ARG001 - in the form of prompt.copy_by_setting
    return NOT_COPIED


def _answer_pane(event: dict[str, Any]) -> dict[str, Any]:
    from resume_hooks.hooks.session_list import pane  # nothing to the other commands

    session_id, where = reply.field(event, "session_id"), Where()
    if word := reply.field(event, "key"):
        return pane.open_marked_session(word, event, session_id, where)
    return pane.update_pane(event, reply.transcript(event, session_id, where), where)


def _cold_cache_reply(event: dict[str, Any]) -> dict[str, Any]:
    """A line on the cost of continuing without a cache, ``{}`` if that is not worth a line."""
    from resume_hooks.hooks.session import cold_in_client  # nothing to the other questions

    line = cold_in_client(event)
    if line:
        return {"text": line}
    return {}


def _context_reply(event: dict[str, Any]) -> dict[str, Any]:
    """How full the session is, the best way to continue, and the token count at which to ask again."""
    session_id, used = reply.field(event, "session_id"), event.get("tokens")
    if not (is_session_id(session_id) and isinstance(used, int)):
        return {}
    shown = context_notice.band(session_id, reply.transcript(event, session_id, Where()), used)
    if compaction.why_not_asked(event):
        return shown
    return shown | compaction.choice_percent() | compaction.compaction_line()


def _offered_tools(_: dict[str, Any]) -> dict[str, Any]:
    if _has_tool():
        return {"tools": [HANDOFF_TOOL]}
    return {}


def _answer_tool_call(event: dict[str, Any]) -> dict[str, Any]:
    """The question for the user.

    Once they ``said`` something, the answer to the model, with ``step`` after a yes.
    """
    step, said = plain_line(reply.field(event, "args")).strip(), reply.field(event, "said")
    if not _has_tool():
        return {"text": "The user has switched this off."}
    if reply.field(event, "agent_id"):
        return {"text": "Only the main conversation can be handed off."}
    if len(step) > MOST_STEP:
        return {
            "text": f"next_step has {len(step):,} characters: the user can be shown {MOST_STEP}."
        }
    if step and not _is_plain(step):
        return {
            "text": (
                "next_step begins with what /handoff takes for a size or an option: begin it "
                "with another word."
            )
        }
    if said == CHOICES["handoff"][0][1]:
        return {
            "text": "The user agreed. End your turn now; the fresh session then opens.",
            "step": step,
        }
    if said:
        if said == CHOICES["handoff"][-1][1]:
            words = ""
        else:
            words = f" Their words: {said}"
        return {"text": f"The user said no: go on here, and ask again only if they want it.{words}"}
    if step:
        shown = f"Its next step, which would wait in the box: {step}"
    else:
        shown = "It names no next step."
    return {
        "ask": f"The model asks to continue in a new session. {shown}",
        "choices": [list(choice) for choice in CHOICES["handoff"]],
    }


def _is_plain(step: str) -> bool:
    """Whether the whole text would be taken as the step, so that the user confirms what will stand in the box."""
    from resume_hooks.hooks.handoff import parse_handoff_words  # nothing to the other commands

    try:
        return parse_handoff_words(step).next_step == step
    except UsageError:
        return False


def _has_tool() -> bool:
    return settings.is_on("handoff_tool") and not prompt.is_trigger_off("handoff")


def _new_folder_reply(event: dict[str, Any]) -> dict[str, Any]:
    """The parts' lines on a folder without sessions, and the announcement of the vault; ``{}`` for nothing."""
    from resume_hooks.hooks import expiring_sessions  # nothing to the commands

    said = [line(event) for line in answers(questions.line_of_new_folder)]
    line = " · ".join(filter(None, [*said, expiring_sessions.vault_line(event, Where())]))
    if line:
        return _text_reply(line)
    return {}


def _abandoned_wait_reply(event: dict[str, Any]) -> dict[str, Any]:
    from resume_hooks.hooks import rollover  # nothing to the other commands

    ended = trigger_of_command(reply.field(event, "args"), "")
    if ended.verb == "rollover":
        path = reply.transcript(event, reply.field(event, "session_id"), Where())
    else:
        path = None
    if path:
        text = rollover.answer_abandoned_wait(session_file(path), Where(), ended)
    else:
        text = ""
    if text:
        return {"text": text}
    return {}


def _pane_error_reply(text: str) -> dict[str, Any]:
    """An error in place of the pane's first line; the pane stays open."""
    return {"head": plain_line(" ".join(_text_reply(text)["text"].split())), "next": ""}


def _text_reply(text: str) -> dict[str, Any]:
    """A text to show; the client says in front of it whose it is."""
    return {"text": plain_text(text).removeprefix("resume-hooks · ").removeprefix("resume-hooks: ")}


def _empty_reply(_: object) -> dict[str, Any]:
    return {}


UNTYPED: dict[
    str, tuple[Callable[[dict[str, Any]], dict[str, Any]], Callable[[str], dict[str, Any]]]
] = {
    PANE: (_answer_pane, _pane_error_reply),
    BAND: (_context_reply, _empty_reply),
    OFFER: (_offered_tools, _empty_reply),
    TOOL: (_answer_tool_call, _text_reply),
    FULL: (compaction.compaction_choice, _empty_reply),
    MOVED: (_new_folder_reply, _text_reply),
    LEFT: (_abandoned_wait_reply, _empty_reply),
    COLD: (_cold_cache_reply, _empty_reply),
    RULES: (_empty_reply, _empty_reply),
}
"""What the module asks that nobody typed: what answers it, and what a failure is told by."""
