"""Compare the size of a session in five places, and compare it with the client's next request.

``python -m benchmarks.context [CLIENTS]``. Each real session is alone in a home. For all sessions,
the sizes in ``sessions``, ``info``, ``/full`` and in the receipts of a trim and a handoff are
compared with each other. For the first CLIENTS sessions (default: 60), the newest client resumes
the session with a mock of the API. The characters of talk in the client's request are compared with
the characters in the session's conversation. The mock has no tokenizer, so the difference is
converted to tokens with the usual ratio.
"""

from __future__ import annotations

import re
import sys
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from resume_hooks import clock
from resume_hooks.cli.info import collect_session_facts
from resume_hooks.derive import agents
from resume_hooks.derive.compare import compare_strategies
from resume_hooks.derive.trim.options import make_options
from resume_hooks.derive.verbs.trim import plan_trim
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, is_session_id
from resume_hooks.search.listing import SessionLister
from resume_hooks.sessions.locate import SessionFile, session_file
from resume_hooks.sessions.session import Session
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import make_node
from resume_hooks.transcripts.records import MESSAGE_KINDS, Record
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN, ContextSize
from resume_hooks.transcripts.transcript import scan_transcript
from resume_hooks.transcripts.trimmable_pieces import PieceCollector
from tests.e2e.harness.client import NEWEST_VERSION, ClientHome, find_client, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.needs import corpus_folder, corpus_sessions

# Two sizes count as equal if their difference is at most this fraction of the larger size.
MAX_DIFFERENCE_FRACTION = 0.02
NEW_PROMPT = "go on now"
REMINDER_TAG = "<system-reminder>"
_REMINDERS_PATTERN = re.compile(r"\s*<system-reminder>.*?</system-reminder>", re.DOTALL)
THINKING_TYPES = {"thinking", "redacted_thinking"}


class SessionSizes(NamedTuple):
    """The size of a session in tokens, and its window, for each place that shows them.

    ``places_with_estimates`` are the places that call their size an estimate, and ``character_count`` is
    the length of the live conversation.
    """

    tokens_by_place: dict[str, int]
    window_by_place: dict[str, int | None]
    places_with_estimates: frozenset[str]
    character_count: int


def main() -> int:
    """Print the number of sessions whose sizes are equal, marked as estimates, or different. Return 0."""
    max_clients = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    compared = [0, 0, 0]
    windows = sent_count = sent_close = 0
    for path in corpus_sessions():
        with tempfile.TemporaryDirectory(prefix="resume-hooks-context-") as scratch:
            home = ClientHome(Path(scratch))
            installed = home.install_session(
                path, path.stem if is_session_id(path.stem) else str(uuid.uuid4())
            )
            found = measure_sizes(session_file(str(installed)), home.where)
            if found is None:
                continue
            kind = classify_sizes(found)
            compared[kind] += 1
            windows += len(set(found.window_by_place.values())) <= 1
            name = path.relative_to(corpus_folder())
            if kind == DIFFERENT:
                print(f"apart: {name}: {found.tokens_by_place}")
            if len(set(found.window_by_place.values())) > 1:
                print(f"windows: {name}: {found.window_by_place}")
            sent_characters = (
                count_sent_characters(home, installed)
                if sent_count < max_clients and found.character_count
                else None
            )
            if sent_characters is not None:
                sent_count += 1
                beyond = round((sent_characters - found.character_count) / CHARACTERS_PER_TOKEN)
                is_close = are_close(
                    found.tokens_by_place["info"] + beyond, found.tokens_by_place["info"]
                )
                sent_close += is_close
                if not is_close:
                    print(
                        f"sent: {name}: {sent_characters:,} characters, {found.character_count:,} counted"
                    )
    print(
        f"{sum(compared)} sessions: {compared[SAME]} show the same size in all places (within 2 %), "
        f"{compared[MARKED]} mark the differing sizes as estimates,"
    )
    print(
        f"{compared[DIFFERENT]} show different sizes. {windows} show the same window in all places, or none."
    )
    print(f"{sent_count} resumed: in {sent_close} the request is within 2 % of what `info` says.")
    return 0


SAME, MARKED, DIFFERENT = range(3)


def classify_sizes(sizes: SessionSizes) -> int:
    """Return SAME if all sizes are equal within 2 %, else MARKED or DIFFERENT.

    MARKED means that the sizes that are not called estimates are equal.
    """
    if are_close(min(sizes.tokens_by_place.values()), max(sizes.tokens_by_place.values())):
        return SAME
    firm = [
        count
        for place, count in sizes.tokens_by_place.items()
        if place not in sizes.places_with_estimates
    ]
    return MARKED if not firm or are_close(min(firm), max(firm)) else DIFFERENT


def are_close(first_size: int, second_size: int) -> bool:
    """Check whether two sizes differ by at most 2 %."""
    return abs(first_size - second_size) <= MAX_DIFFERENCE_FRACTION * max(first_size, second_size)


def measure_sizes(session: SessionFile, where: Where) -> SessionSizes | None:
    """Return the sizes of a session in all places that show them, or None if it has no conversation."""
    try:
        pieces = PieceCollector()
        transcript = scan_transcript(session.path, observers=[pieces])
        if not any(node.is_in_conversation for node in transcript.chain):
            return None
        info: ContextSize = collect_session_facts(
            Session.from_file(session, where), transcript, pieces
        )["context"]
        full = compare_strategies(session, where, clock.now()).context
        row = SessionLister("/", where).row_of_session(session, None)
    except ResumeHooksError:
        return None
    said = [transcript.read_record(node) for node in transcript.chain if node.kind in MESSAGE_KINDS]
    tokens = {"info": info.tokens, "/full": full.tokens}
    windows = {"info": get_known_window(info), "/full": get_known_window(full)}
    estimates = {place for place, use in (("info", info), ("/full", full)) if use.is_estimate}
    if row is not None and row.context_tokens is not None:
        tokens["sessions"] = row.context_tokens
        windows["sessions"] = get_known_window(row.context)
        estimates |= {"sessions"} if row.context.is_estimate else set()
    for place, plan in (("trim", size_before_trim), ("handoff", size_before_handoff)):
        before = plan(session, where)
        if before:
            tokens[place] = before
            if info.is_estimate:
                estimates.add(place)
    return SessionSizes(tokens, windows, frozenset(estimates), count_message_characters(said))


def get_known_window(context_size: ContextSize) -> int | None:
    """Return the window of a context, or None if it is unknown."""
    return context_size.window if context_size.is_window_known else None


def size_before_trim(session: SessionFile, where: Where) -> int:
    """Return the size before a trim, as its receipt shows it, or 0 if the session cannot be trimmed."""
    try:
        return plan_trim(session, where, make_options()).sizes.tokens_before
    except ResumeHooksError:
        return 0


def size_before_handoff(session: SessionFile, where: Where) -> int:
    """Return the size before a handoff, as its receipt shows it, or 0 if a handoff is impossible."""
    try:
        return agents.plan_fresh_child(session, where, kind="handoff").sizes.tokens_before
    except ResumeHooksError:
        return 0


def count_sent_characters(home: ClientHome, path: Path) -> int | None:
    """Return the number of characters of talk that the newest client sends when it resumes a session.

    Return None if it sends no request.
    """
    with MockApi() as api:
        run_print(find_client(NEWEST_VERSION), home, api, NEW_PROMPT, resume=path.stem)
        if not api.main_requests():
            return None
        messages: list[Any] = api.main_requests()[-1]["messages"]
    rows: list[Record] = [{"type": row["role"], "uuid": "x", "message": row} for row in messages]
    return count_message_characters([row for row in rows if row["type"] in MESSAGE_KINDS]) - len(
        NEW_PROMPT
    )


def count_message_characters(records: Iterable[Record]) -> int:
    """Return the number of characters in all texts, calls and answers.

    The client's reminders are not counted, because each start adds new ones. Thinking is not
    counted either, because the client does not send the thinking of earlier turns.
    """
    return sum(
        make_node(_keep_messages_and_calls(row), Line(0, 0, b"")).character_count for row in records
    )


def _keep_messages_and_calls(record: Record) -> Record:
    content = record["message"]["content"]
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    kept = []
    for part in parts:
        if part.get("type") not in THINKING_TYPES and not _is_reminder_block(part):
            kept.append(_remove_reminders(part))
    return record | {"message": record["message"] | {"content": kept}}


def _is_reminder_block(block: Record) -> bool:
    return block.get("type") == "text" and str(block.get("text")).lstrip().startswith(REMINDER_TAG)


def _remove_reminders(block: Record) -> Record:
    """Return a block without the reminders that the client adds to a tool's result."""
    content = block.get("content")
    if block.get("type") != "tool_result":
        return block
    if isinstance(content, str):
        return block | {"content": _REMINDERS_PATTERN.sub("", content)}
    texts = []
    for inner_block in content or []:
        if inner_block.get("type") == "text":
            texts.append(inner_block | {"text": _REMINDERS_PATTERN.sub("", inner_block["text"])})
        else:
            texts.append(inner_block)
    return block | {"content": texts}


if __name__ == "__main__":
    sys.exit(main())
