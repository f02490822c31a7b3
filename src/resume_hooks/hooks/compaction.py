"""Answers to the client's compaction: a trimmed conversation, or a digest with the last turns.

Invariant: if a trim that the user requested fails, the conversation stays unchanged. If an
automatic compaction fails, the client's own compaction runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from resume_hooks import settings
from resume_hooks.derive.opening_size import parse_tokens
from resume_hooks.derive.trim import in_client, plan
from resume_hooks.derive.trim.in_client import ClientTrim, MessageRange, ShownMessage
from resume_hooks.derive.trim.options import DEFAULT_KEEP_RECENT, HERE, parse_options
from resume_hooks.derive.trim.plan import SessionScan
from resume_hooks.errors import NothingToTrim, PlanOutdated, UsageError
from resume_hooks.hooks import hook_state, reply
from resume_hooks.hooks.after_compaction import text_after_compaction
from resume_hooks.hooks.request import time_limit
from resume_hooks.paths import Where, is_session_id
from resume_hooks.reading.digest.opening import characters_for_tokens
from resume_hooks.sessions import locate
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.claude_settings import policy_file
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts import records

LIMIT_SECONDS = 10.0  # the time limit of a decision in seconds; only the client waits, not a prompt

SETTING = "compaction"
TRIM_VALUE, CLIENT_VALUE = "trim", "client"
"""The values of the setting for a trim and for the client's own compaction.

Any other value specifies the size of a handoff.
"""

RETRY_PAUSES = (0.2, 0.4)
"""The number of seconds before each new attempt to read the file, because the client may still be
writing it."""

AUTO_TRIGGER, LINE_TRIGGER = "auto", "line"
"""The triggers of automatic compactions: the context is full, or it exceeds the configured limit
(the line)."""

# the number of prompts that the user must type after a compaction before the line applies again
MIN_TURNS_BETWEEN = 5
# the target size of an automatic compaction, as a fraction of the context or of the line
TARGET_SHARE = 0.5
# the maximum acceptable size of the result, as a fraction of the context; above it the client would
# soon compact again
LARGEST_SHARE = 0.8
# the maximum number of characters of restored facts that accompany a trimmed conversation
MAX_FACTS = 3_900
# the name of the note that the user has seen the alternatives to the client's compaction
CHOICE_NOTE = "asked-compaction.json"

SHRUNK_REMARK = "The session was full and was shrunk in place (compaction {chosen}). "
FREES_LITTLE_REMARK = (
    "Compaction {chosen} would have freed too little, so Claude Code writes its own summary."
)
"""Messages about an automatic compaction, which the user did not expect."""

LINE_REMARK = "{chosen}: {before:,}k tokens, now about {after:,}k; back: /untrim"

TOO_SOON_TEXT = (
    f"the last compaction is fewer than {MIN_TURNS_BETWEEN} turns ago; later turns try again"
)
FREES_LITTLE_AT_LINE = "{chosen} would free less than a fifth. /handoff starts afresh."
"""Messages about a compaction at the line; each fits a row of 80 columns."""

CHOICE_TEXT = (
    "{percent} % of the context is used. Once it is full, Claude Code asks a model for a summary. To shrink it in "
    "place without a model, in a shell: {trim} (removes old tool output), or {size} instead of trim (keeps what was "
    "said and the last turns)"
)
"""The alternatives to the client's compaction, shown once if the user has not set one."""

IN_PLACE_TITLE = "(trimmed in place by resume-hooks; no model is asked)"
# the client shows both texts after its own ``/compact``
LINE_TITLE = "({chosen} of resume-hooks; no model is asked)"


def request_compaction(text: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return the module's instructions for ``/trim here``: run the client's compaction, which then asks the module.

    Raise UsageError for an invalid option, and NothingToTrim if the client would compact without
    asking the module.
    """
    if why := reason_not_asked(event):
        raise NothingToTrim(
            f"Nothing was trimmed here: {why}",
            f"A trimmed copy: {shell_command('trim')}, or type /trim.",
        )
    options = text.removeprefix(HERE).strip()
    parse_options(options)
    return {"compact": IN_PLACE_TITLE, "options": options}


def reason_not_asked(event: dict[str, Any]) -> str:
    """Return the reason why the client compacts without asking the module, or ``""`` if it asks.

    The reason is the policy's file. If the policy cannot be read, the reason is that the client has
    not yet called the module at a session's start or a turn's end.
    """
    if path := policy_file(Where()):
        return (
            f"under your organization's policy ({path}) Claude Code makes every compaction itself"
        )
    if event.get("heard") is False:
        return (
            "Claude Code has not called this plugin's module yet: after the next answer, or "
            "never under a policy"
        )
    return ""


def answer_compaction(event: dict[str, Any]) -> dict[str, Any]:
    """Return the module's answer to the client's compaction. ``{}`` means that the client compacts by itself.

    Raise ResumeHooksError.
    """
    session_id, where = reply.text_field(event, "session_id"), Where()
    if is_session_id(session_id):
        path = reply.find_transcript(event, session_id, where)
    else:
        path = None
    if path is None:
        raise NothingToTrim(
            "There is nothing to trim: this session has no transcript yet", "Send a prompt first."
        )
    work = {AUTO_TRIGGER: _compact_when_full, LINE_TRIGGER: _compact_at_line}.get(
        reply.text_field(event, "trigger"), _trim_on_request
    )
    for pause in RETRY_PAUSES:
        with contextlib.suppress(PlanOutdated):
            return work(locate.session_file(path), event, where)
        time.sleep(pause)
    return work(locate.session_file(path), event, where)


def _trim_on_request(session: SessionFile, event: dict[str, Any], where: Where) -> dict[str, Any]:
    with time_limit(shell_command(f"trim {session.session_id}"), LIMIT_SECONDS):
        scan = plan.scan_session(session)
        options = parse_options(reply.text_field(event, "options"))
        plan_in_place = in_client.plan_in_client(scan, _shown_messages(event), options, where)
    if not in_client.pays_in_client(plan_in_place.decision, options):
        raise NothingToTrim(
            f"A trim would save about {plan_in_place.decision.savings.tokens:,} tokens, too few"
        )
    return _compaction_reply(
        session.session_id, plan_in_place, plan_in_place.decision.after.tokens, ""
    )


def decline_compaction(event: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """Return a function that turns the reason for a missing plan into an answer.

    The answer is empty unless the user or the line requested the compaction.
    """
    is_requested = (
        isinstance(event.get("options"), str) or reply.text_field(event, "trigger") == LINE_TRIGGER
    )
    return lambda text: (
        {"skip": plain_line(text).removeprefix("resume-hooks: ")} if is_requested else {}
    )


def choice_reply(event: dict[str, Any]) -> dict[str, Any]:
    """Show the alternatives to the client's compaction once, at the percentage in ``args``.

    Raise OSError.
    """
    percent = reply.text_field(event, "args")
    if not percent.isdigit() or int(percent) < choice_percent().get("tells", 101):
        return {}
    hook_state.write_note(CHOICE_NOTE, {"at": time.time()})
    return {
        "text": CHOICE_TEXT.format(
            percent=percent,
            trim=shell_command(f"config {SETTING} {TRIM_VALUE}"),
            size=settings.DEFAULT_HANDOFF_SIZE,
        )
    }


def choice_percent() -> dict[str, Any]:
    """Return the percentage of the context at which to show the alternatives.

    Return ``{}`` if the alternatives were shown before, or if the user has chosen one.
    """
    percent = settings.read_number("notice_percent")
    is_known = settings.load_settings()[SETTING].source != "default" or hook_state.read_note(
        CHOICE_NOTE
    )
    if not percent or is_known:
        return {}
    return {"tells": percent}


def line_reply() -> dict[str, Any]:
    """Return the compaction that the module runs at the end of a turn above ``from`` tokens.

    Return ``{}`` if the setting has no line.
    """
    chosen, _, tokens = _compaction_setting()
    if tokens:
        return {
            "line": {
                "from": tokens,
                "trigger": LINE_TRIGGER,
                "compact": LINE_TITLE.format(chosen=chosen),
            }
        }
    return {}


def _compaction_setting() -> tuple[str, str, int]:
    """Return the setting, its kind of compaction, and its line in tokens, or 0 for no line."""
    setting = str(settings.load_settings()[SETTING].value)
    way, _, size = setting.partition("@")
    return setting, way, 1_000 * int(size[:-1] or 0)


def _compact_when_full(session: SessionFile, event: dict[str, Any], where: Where) -> dict[str, Any]:
    """Return the conversation for an automatic compaction in a full context.

    If there are no messages, the client writes its own summary.
    """
    setting, way, _ = _compaction_setting()
    if way == CLIENT_VALUE:
        return {}
    smaller = _shrink_conversation(session, event, where, way)
    if not smaller:
        return {"remark": FREES_LITTLE_REMARK.format(chosen=setting)}
    return {**smaller, "remark": SHRUNK_REMARK.format(chosen=setting) + smaller["remark"]}


def _compact_at_line(session: SessionFile, event: dict[str, Any], where: Where) -> dict[str, Any]:
    """Return the conversation for a compaction between two turns, above the line.

    Raise NothingToTrim to leave it unchanged.
    """
    setting, way, tokens = _compaction_setting()
    if tokens:
        smaller = _shrink_conversation(session, event, where, way, tokens)
    else:
        smaller = {}
    if "skip" in smaller:
        return smaller
    if not smaller:
        raise NothingToTrim(
            FREES_LITTLE_AT_LINE.format(chosen=setting) if tokens else f"{SETTING} is {setting}"
        )
    before, after = (round(smaller[name] / 1_000) for name in ("before", "after"))
    return {**smaller, "remark": LINE_REMARK.format(chosen=setting, before=before, after=after)}


def _shrink_conversation(
    session: SessionFile, event: dict[str, Any], where: Where, way: str, line: int = 0
) -> dict[str, Any]:
    """Return the smaller conversation, or ``{}`` if too few tokens become free.

    ``line`` is the line in tokens, or 0 for a full context. If the last compaction at the line was
    too recent, return only ``skip`` and ``rests``, so that the module tries again later.
    """
    started = time.monotonic()
    is_handoff = way != TRIM_VALUE
    max_facts = characters_for_tokens(parse_tokens(way)) if is_handoff else MAX_FACTS
    facts = text_after_compaction(session.session_id, session.path, max_facts, LIMIT_SECONDS / 2)
    if is_handoff and not facts:
        return {}
    with time_limit(seconds=LIMIT_SECONDS - (time.monotonic() - started)):
        scan, shown = plan.scan_session(session), _shown_messages(event)
        chain = scan.transcript.chain
        if (
            line
            and chain[0].boundary
            and sum(node.prompt and not node.copied for node in chain) < MIN_TURNS_BETWEEN
        ):
            # A restarted client does not remember its last compaction.
            return {
                "skip": TOO_SOON_TEXT,
                "rests": True,
            }
        aim = round(min(scan.context.tokens, line or scan.context.tokens) * TARGET_SHARE)
        rebuilt = _rebuilt_range(scan, shown, aim if is_handoff else 0, is_between=bool(line))
        plan_in_place = in_client.plan_in_client(
            scan, shown, parse_options(f"--target-tokens {aim}"), where, rebuilt
        )
    dropped = _tokens_of_messages(scan, shown[: rebuilt.start])
    after = round(plan_in_place.decision.after.tokens - dropped + len(facts) / scan.scale.ratio)
    if (
        after > scan.context.tokens * LARGEST_SHARE
        or scan.context._replace(tokens=after).compacts_at_once
    ):
        return {}
    return _compaction_reply(session.session_id, plan_in_place, after, facts)


def _rebuilt_range(
    scan: SessionScan, shown: Sequence[ShownMessage], aim: int, *, is_between: bool
) -> MessageRange:
    """Return the range of messages to rebuild: all messages, or those before the running turn.

    With an ``aim`` in tokens, the range starts with the first of the last turns that fit. Between
    turns the range always includes the last turn.
    """
    prompts = set()
    for node in scan.transcript.chain:
        if node.prompt:
            prompts.add(node.uuid)
    chain_ids = {node.uuid for node in scan.transcript.chain}
    turn_starts = [
        index
        for index, message in enumerate(shown)
        if message.stays and (message.handle in prompts or message.handle not in chain_ids)
    ] or [len(shown)]
    end = len(shown) if is_between else turn_starts[-1]
    if not aim:
        return MessageRange(0, end)
    recent = [index for index in turn_starts if index < end][-DEFAULT_KEEP_RECENT:]
    fitting_starts = (index for index in recent if _tokens_of_messages(scan, shown[index:]) <= aim)
    return MessageRange(next(fitting_starts, turn_starts[-1]), end)


def _tokens_of_messages(scan: SessionScan, shown: Sequence[ShownMessage]) -> float:
    handles = {message.handle for message in shown}
    return (
        sum(node.characters for node in scan.transcript.chain if node.uuid in handles)
        / scan.scale.ratio
    )


def _shown_messages(event: dict[str, Any]) -> list[ShownMessage]:
    """Return the messages in the client's context. Raise UsageError if there are none."""
    rows = records.objects(event.get("messages"))
    if not rows:
        raise UsageError("Claude Code sent no messages")
    messages = []
    for row in rows:
        messages.append(
            ShownMessage(
                records.string(row, "handle"),
                records.string(row, "role"),
                _strings_in_field(row, "calls"),
                _strings_in_field(row, "results"),
            )
        )
    return messages


def _strings_in_field(row: dict[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name)
    if isinstance(value, list):
        return tuple(word for word in value if isinstance(word, str))
    return ()


def _compaction_reply(
    session_id: str, plan_in_place: ClientTrim, after: int, opening: str
) -> dict[str, Any]:
    """Return the answer in the format that the module expects.

    Also write a note that we answered this compaction, so that no later hook restores anything.
    """
    before = plan_in_place.decision.before.tokens
    hook_state.write_note(hook_state.compaction_note(session_id), {"at": time.time()})
    return {
        "opening": [opening] if opening else [],
        **{
            name: getattr(plan_in_place, name)
            for name in ("messages", "texts", "results", "inputs", "gone")
        },
        "before": before,
        "after": after,
        "remark": f"{before:,} tokens before, about {after:,} now. Each placeholder names its "
        "original, which can be read. /untrim restores everything, in a copy.",
    }
