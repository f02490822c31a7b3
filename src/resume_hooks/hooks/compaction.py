"""Answers to the client's compaction: a trimmed conversation, or a digest with the last turns.

Invariant: if a trim that the user requested fails, the conversation does not change. If our answer
to an automatic compaction fails, the client compacts by itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from resume_hooks import settings
from resume_hooks.derive.opening_size import convert_size_to_tokens
from resume_hooks.derive.trim import in_client, plan
from resume_hooks.derive.trim.in_client import ClientTrim, MessageRange, ShownMessage
from resume_hooks.derive.trim.options import DEFAULT_KEPT_TURN_COUNT, IN_PLACE_WORD, parse_options
from resume_hooks.derive.trim.plan import SessionScan
from resume_hooks.errors import NothingToTrim, PlanOutdated, UsageError
from resume_hooks.hooks import hook_replies, hook_state
from resume_hooks.hooks.after_compaction import describe_lost_facts
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.paths import Where, is_session_id
from resume_hooks.reading.digest.opening import convert_tokens_to_characters
from resume_hooks.sessions import locate
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.claude_settings import find_policy_file
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts import records

# the time limit in seconds for an answer; the client waits for the answer
DECISION_TIMEOUT_SECONDS = 10.0

COMPACTION_SETTING = "compaction"
TRIM_VALUE, CLIENT_VALUE = "trim", "client"
"""Values of the setting ``compaction``: trim, or let the client compact by itself.

Every other value is the size of a handoff.
"""

RETRY_PAUSE_SECONDS = (0.2, 0.4)
"""The pauses in seconds before the second and the third attempt to compact. An attempt fails if the
client writes to the session's file in the meantime."""

AUTO_TRIGGER, THRESHOLD_TRIGGER = "auto", "line"
"""The two reasons for an automatic compaction: the context is full, or exceeds the user's
threshold."""

# the minimum number of prompts between a compaction and the next one at the threshold
MIN_TURNS_BETWEEN_COMPACTIONS = 5
# the size that an automatic compaction aims at, as a fraction of the context or of the threshold
TARGET_SIZE_FRACTION = 0.5
# the maximum size of the result as a fraction of the context; a larger result would soon be
# compacted again
MAX_RESULT_FRACTION_OF_CONTEXT = 0.8
# the maximum number of characters of the restored facts in a trimmed conversation
MAX_FACTS_CHARACTERS = 3_900
# The name of the note which says that the user has seen the alternatives to the client's
# compaction.
ALTERNATIVES_NOTE_NAME = "asked-compaction.json"

SHRUNK_IN_PLACE_REMARK = "The session was full and was shrunk in place (compaction {chosen}). "
TOO_LITTLE_FREED_REMARK = (
    "Compaction {chosen} would have freed too little, so Claude Code writes its own summary."
)
"""Remarks to the user after an automatic compaction. The first is shown if this plugin shrank the
session, the second if shrinking it would have freed too few tokens."""

COMPACTED_AT_THRESHOLD_REMARK = "{chosen}: {before:,}k tokens, now about {after:,}k; back: /untrim"

TOO_SOON_REASON = (
    f"the last compaction was fewer than {MIN_TURNS_BETWEEN_COMPACTIONS} turns ago; "
    "a later turn tries again"
)
TOO_LITTLE_FREED_REASON = (
    "{chosen} would free less than a fifth of the context. Type /handoff instead."
)
"""Two reasons why the context was not compacted at the threshold. Each fits a row of 80 columns."""

ALTERNATIVES_TEXT = (
    "{percent} % of the context is used. Once it is full, Claude Code asks a model for a summary. To shrink it in "
    "place without a model, in a shell: {trim} (removes old tool output), or {size} instead of trim (keeps what was "
    "said and the last turns)"
)
"""The alternatives to the client's compaction. They are shown once, if the setting ``compaction``
has its default value."""

TRIM_IN_PLACE_TITLE = "(trimmed in place by resume-hooks; no model is asked)"
# The client also shows this title after its own ``/compact``.
THRESHOLD_COMPACTION_TITLE = "(resume-hooks does this: {chosen}; no model is asked)"


def request_compaction(text: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return the module's instructions for ``/trim here``.

    The module starts the client's compaction. The client then asks the module for the messages that
    replace the conversation. Raise UsageError for an invalid option, and NothingToTrim if this
    client would not ask the module for these messages.
    """
    if reason := reason_for_client_compaction(event):
        raise NothingToTrim(
            f"Nothing was trimmed here: {reason}",
            f"To create a trimmed copy: {shell_command('trim')}, or type /trim.",
        )
    options = text.removeprefix(IN_PLACE_WORD).strip()
    parse_options(options)
    return {"compact": TRIM_IN_PLACE_TITLE, "options": options}


def reason_for_client_compaction(event: dict[str, Any]) -> str:
    """Return why the client compacts without asking the module. Return ``""`` if it asks the module.

    The reason is either an organization's policy, or that the client has not called the module yet.
    """
    if path := find_policy_file(Where()):
        return (
            f"under your organization's policy ({path}) Claude Code makes every compaction itself"
        )
    if event.get("heard") is False:
        return (
            "Claude Code has not called this plugin's module yet. It does so after the next answer, "
            "or never if a policy prevents it"
        )
    return ""


def answer_compaction(event: dict[str, Any]) -> dict[str, Any]:
    """Return the module's answer to a compaction. ``{}`` lets the client compact by itself.

    Raise ResumeHooksError.
    """
    session_id, where = hook_replies.text_field(event, "session_id"), Where()
    if is_session_id(session_id):
        path = hook_replies.find_transcript(event, session_id, where)
    else:
        path = None
    if path is None:
        raise NothingToTrim(
            "There is nothing to trim: this session has no transcript yet", "Send a prompt first."
        )
    compact = {AUTO_TRIGGER: _compact_when_full, THRESHOLD_TRIGGER: _compact_at_threshold}.get(
        hook_replies.text_field(event, "trigger"), _trim_on_request
    )
    for pause in RETRY_PAUSE_SECONDS:
        with contextlib.suppress(PlanOutdated):
            return compact(locate.session_file(path), event, where)
        time.sleep(pause)
    return compact(locate.session_file(path), event, where)


def _trim_on_request(session: SessionFile, event: dict[str, Any], where: Where) -> dict[str, Any]:
    with time_limit(shell_command(f"trim {session.session_id}"), DECISION_TIMEOUT_SECONDS):
        scan = plan.scan_session(session)
        options = parse_options(hook_replies.text_field(event, "options"))
        plan_in_place = in_client.plan_trim_in_client(
            scan, _parse_shown_messages(event), options, where
        )
    if not in_client.is_worthwhile_in_client(plan_in_place.decision, options):
        raise NothingToTrim(
            f"A trim would save about {plan_in_place.decision.savings.tokens:,} tokens, which is too few"
        )
    return _make_compaction_reply(
        session.session_id, plan_in_place, plan_in_place.decision.context_after.tokens, ""
    )


def make_decline_reply(event: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """Return a function that takes the reason for a failure and returns the module's answer.

    The answer shows the reason only if the user or the threshold requested the compaction.
    """
    is_requested = (
        isinstance(event.get("options"), str)
        or hook_replies.text_field(event, "trigger") == THRESHOLD_TRIGGER
    )
    return lambda text: (
        {"skip": plain_line(text).removeprefix("resume-hooks: ")} if is_requested else {}
    )


def make_compaction_alternatives_reply(event: dict[str, Any]) -> dict[str, Any]:
    """Return the alternatives to the client's compaction, if enough of the context is in use.

    ``args`` in the event is the percentage that is in use. The alternatives are returned only if it
    has reached the percentage in ``make_alternatives_percent_reply``. They are shown only once. Raise
    OSError if the note about this can't be written.
    """
    percent = hook_replies.text_field(event, "args")
    if not percent.isdigit() or int(percent) < make_alternatives_percent_reply().get("tells", 101):
        return {}
    hook_state.write_note(ALTERNATIVES_NOTE_NAME, {"at": time.time()})
    return {
        "text": ALTERNATIVES_TEXT.format(
            percent=percent,
            trim=shell_command(f"config {COMPACTION_SETTING} {TRIM_VALUE}"),
            size=settings.DEFAULT_HANDOFF_SIZE,
        )
    }


def make_alternatives_percent_reply() -> dict[str, Any]:
    """Return a reply with the percentage of used context at which the module offers the alternatives.

    The alternatives are those to the client's own compaction. Return ``{}`` if the user has already
    seen them, has changed the setting ``compaction``, or has set ``notice_percent`` to 0.
    """
    percent = settings.read_number_setting("notice_percent")
    is_decided = settings.load_settings()[
        COMPACTION_SETTING
    ].source != "default" or hook_state.read_note(ALTERNATIVES_NOTE_NAME)
    if not percent or is_decided:
        return {}
    return {"tells": percent}


def make_threshold_reply() -> dict[str, Any]:
    """Return the number of tokens (``from``) above which the module compacts at the end of a turn.

    The reply also contains the compaction's title, which the client shows. If the setting has no
    threshold, the reply is ``{}``.
    """
    setting, _, tokens = _read_compaction_setting()
    if tokens:
        return {
            "line": {
                "from": tokens,
                "trigger": THRESHOLD_TRIGGER,
                "compact": THRESHOLD_COMPACTION_TITLE.format(chosen=setting),
            }
        }
    return {}


class _CompactionSetting(NamedTuple):
    """The setting ``compaction``: its whole value, and the value's two parts.

    ``method`` is "client", "trim" or a size. ``threshold_tokens`` is 0 if the setting has no
    threshold.
    """

    value: str
    method: str
    threshold_tokens: int


def _read_compaction_setting() -> _CompactionSetting:
    value = str(settings.load_settings()[COMPACTION_SETTING].value)
    method, _, size = value.partition("@")
    return _CompactionSetting(value, method, 1_000 * int(size[:-1] or 0))


def _compact_when_full(session: SessionFile, event: dict[str, Any], where: Where) -> dict[str, Any]:
    """Return the messages that replace the conversation when the context is full.

    If the reply contains no messages, the client writes its own summary.
    """
    setting, method, _ = _read_compaction_setting()
    if method == CLIENT_VALUE:
        return {}
    shrunk_conversation = _shrink_conversation(session, event, where, method)
    if not shrunk_conversation:
        return {"remark": TOO_LITTLE_FREED_REMARK.format(chosen=setting)}
    return {
        **shrunk_conversation,
        "remark": SHRUNK_IN_PLACE_REMARK.format(chosen=setting) + shrunk_conversation["remark"],
    }


def _compact_at_threshold(
    session: SessionFile, event: dict[str, Any], where: Where
) -> dict[str, Any]:
    """Return the conversation that replaces the context after a turn above the threshold.

    Raise NothingToTrim if the conversation should not change.
    """
    setting, method, tokens = _read_compaction_setting()
    if tokens:
        shrunk_conversation = _shrink_conversation(session, event, where, method, tokens)
    else:
        shrunk_conversation = {}
    if "skip" in shrunk_conversation:
        return shrunk_conversation
    if not shrunk_conversation:
        raise NothingToTrim(
            TOO_LITTLE_FREED_REASON.format(chosen=setting)
            if tokens
            else f"{COMPACTION_SETTING} is {setting}"
        )
    thousands_before, thousands_after = (
        round(shrunk_conversation[name] / 1_000) for name in ("before", "after")
    )
    return {
        **shrunk_conversation,
        "remark": COMPACTED_AT_THRESHOLD_REMARK.format(
            chosen=setting, before=thousands_before, after=thousands_after
        ),
    }


def _shrink_conversation(
    session: SessionFile, event: dict[str, Any], where: Where, method: str, threshold: int = 0
) -> dict[str, Any]:
    """Return the smaller conversation, or ``{}`` if it would free too few tokens.

    ``threshold`` is in tokens. It is 0 if the context is full. If the last compaction at the
    threshold was only a few turns ago, return a reply with ``skip`` and ``rests``, so that the
    module tries again after later turns.
    """
    started = time.monotonic()
    is_handoff = method != TRIM_VALUE
    max_facts = (
        convert_tokens_to_characters(convert_size_to_tokens(method))
        if is_handoff
        else MAX_FACTS_CHARACTERS
    )
    facts = describe_lost_facts(
        session.session_id, session.path, max_facts, DECISION_TIMEOUT_SECONDS / 2
    )
    if is_handoff and not facts:
        return {}
    with time_limit(seconds=DECISION_TIMEOUT_SECONDS - (time.monotonic() - started)):
        scan, messages = plan.scan_session(session), _parse_shown_messages(event)
        chain = scan.transcript.chain
        if (
            threshold
            and chain[0].is_boundary
            and sum(node.is_prompt and not node.is_copied for node in chain)
            < MIN_TURNS_BETWEEN_COMPACTIONS
        ):
            # The module also counts the turns since the last compaction, but its count is lost
            # when the client restarts.
            return {
                "skip": TOO_SOON_REASON,
                "rests": True,
            }
        target_tokens = round(
            min(scan.context.tokens, threshold or scan.context.tokens) * TARGET_SIZE_FRACTION
        )
        rebuilt_range = _range_to_rebuild(
            scan, messages, target_tokens if is_handoff else 0, is_between_turns=bool(threshold)
        )
        plan_in_place = in_client.plan_trim_in_client(
            scan, messages, parse_options(f"--target-tokens {target_tokens}"), where, rebuilt_range
        )
    dropped_tokens = _estimate_tokens_of_messages(scan, messages[: rebuilt_range.start_index])
    tokens_after = round(
        plan_in_place.decision.context_after.tokens
        - dropped_tokens
        + len(facts) / scan.scale.characters_per_token
    )
    if (
        tokens_after > scan.context.tokens * MAX_RESULT_FRACTION_OF_CONTEXT
        or scan.context._replace(tokens=tokens_after).compacts_at_once
    ):
        return {}
    return _make_compaction_reply(session.session_id, plan_in_place, tokens_after, facts)


def _range_to_rebuild(
    scan: SessionScan,
    messages: Sequence[ShownMessage],
    target_tokens: int,
    *,
    is_between_turns: bool,
) -> MessageRange:
    """Return the range of messages to rebuild: all messages, or all except those of the running turn.

    With ``target_tokens``, only the last turns are rebuilt, as many as this number of tokens
    allows. ``is_between_turns`` means that no turn is running.
    """
    is_prompt = {node.uuid: node.is_prompt for node in scan.transcript.chain}
    turn_starts = []
    for index, message in enumerate(messages):
        if message.is_user_message and is_prompt.get(message.record_uuid, True):
            turn_starts.append(index)
    last_start = turn_starts[-1] if turn_starts else len(messages)
    end = len(messages) if is_between_turns else last_start
    if not target_tokens:
        return MessageRange(0, end)
    earlier_starts = [index for index in turn_starts if index < end]
    for start in earlier_starts[-DEFAULT_KEPT_TURN_COUNT:]:
        if _estimate_tokens_of_messages(scan, messages[start:]) <= target_tokens:
            return MessageRange(start, end)
    return MessageRange(last_start, end)


def _estimate_tokens_of_messages(scan: SessionScan, messages: Sequence[ShownMessage]) -> float:
    handles = {message.record_uuid for message in messages}
    return (
        sum(node.character_count for node in scan.transcript.chain if node.uuid in handles)
        / scan.scale.characters_per_token
    )


def _parse_shown_messages(event: dict[str, Any]) -> list[ShownMessage]:
    """Return the messages in the client's context. Raise UsageError if the client sent none."""
    rows = records.list_objects(event.get("messages"))
    if not rows:
        raise UsageError("Claude Code sent no messages")
    messages = []
    for row in rows:
        messages.append(
            ShownMessage(
                records.get_string(row, "handle"),
                records.get_string(row, "role"),
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


def _make_compaction_reply(
    session_id: str, plan_in_place: ClientTrim, tokens_after: int, opening: str
) -> dict[str, Any]:
    """Return the answer to a compaction in the form that the module expects.

    Also write a note, so that the hook after the compaction restores nothing.
    """
    tokens_before = plan_in_place.decision.context_before.tokens
    hook_state.write_note(hook_state.compaction_note_name(session_id), {"at": time.time()})
    return {
        "opening": [opening] if opening else [],
        "messages": plan_in_place.kept_and_joined_indexes,
        "texts": plan_in_place.new_texts,
        "results": plan_in_place.new_results,
        "inputs": plan_in_place.new_inputs,
        "gone": plan_in_place.unpaired_call_ids,
        "before": tokens_before,
        "after": tokens_after,
        "remark": f"{tokens_before:,} tokens before, about {tokens_after:,} now. Each placeholder says where "
        "to read the original text. /untrim makes a copy in which everything is restored.",
    }
