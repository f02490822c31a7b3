"""An untrim of a Codex session: a child in which the items that were trimmed are as they were."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Mapping

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write import Sizes
from resume_hooks.derive.untrim import MissingOriginal, UntrimPlan, lost, sentences
from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.derive.thread import CodexThread
from resume_hooks.parts.codex.sessions.files import Rollouts
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.history import History
from resume_hooks.parts.codex.transcripts.lines import COMPACTED
from resume_hooks.parts.codex.transcripts.segments import chain_lines
from resume_hooks.transcripts.placeholders import MARKS, Origin
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN

Originals = dict[tuple[str, str], Record]
"""Items as they were, by the thread that holds each and its id."""


def plan(
    parent: CodexThread, child: Draft, originals: Originals, wanted: Mapping[str, int], *, strict: bool
) -> UntrimPlan:
    """Decide what comes back of the items ``wanted``, by their ids, each with its line as references name it.

    SessionNotFound where nothing is there, or with ``strict`` not all.
    """
    trimmed = parent.trimmed
    chosen = [place for place in sorted(trimmed) if parent.items[place].uuid in wanted]
    edited, missing = dict[int, Record](), list[MissingOriginal]()
    for place in chosen:
        item, origin = parent.items[place], trimmed[place]
        original = originals.get((origin.session_id, origin.uuid))
        if original is None or _identity(original) != _identity(item.payload):
            why = "its original is gone" if original is None else f"{origin.reference} holds something else"
            missing.append(MissingOriginal(wanted[item.uuid], why))
            continue
        kept = {key: value for key, value in parent.told[place].items() if key not in MARKS}
        edited[place] = {**kept, "payload": original}
    if missing and (strict or not edited):
        raise SessionNotFound(lost(missing, len(chosen)), "Nothing was written.")
    back = sum(of_items.size(told["payload"]) - of_items.size(parent.items[at].payload) for at, told in edited.items())
    before = parent.context
    after = before._replace(tokens=before.tokens + round(back / CHARACTERS_PER_TOKEN))
    head = child.head(ChildSize(after.tokens, CHARACTERS_PER_TOKEN))
    return UntrimPlan(
        draft=child,
        body=parent.child_body(child, head, edited),
        sizes=Sizes(before.tokens, after.tokens),
        remarks=tuple(sentences(missing)),
        restored=tuple(edited),
        missing=tuple(missing),
        trimmed=len(trimmed),
        after=after,
        characters=back,
    )


def originals_of(rollouts: Rollouts, origins: Iterable[Origin]) -> Originals:
    """The items that origins name, read from the threads that hold them, each thread once."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for origin in origins:
        wanted[origin.session_id].add(origin.uuid)
    found: Originals = {}
    for session_id, uuids in wanted.items():
        newest, history = rollouts.threads.get(session_id), History()
        with contextlib.suppress(SessionNotFound, NotATranscript):
            for line in chain_lines(newest.path, rollouts.path_of) if newest else ():
                history.take(line)
                for item in history.items if line.kind == COMPACTED else history.items[-1:]:
                    if item.uuid in uuids:
                        found.setdefault((session_id, item.uuid), item.payload)
    return found


def _identity(item: Record) -> tuple[str, object, str]:
    """What a trim leaves of an item."""
    return of_items.kind(item), item.get("role"), of_items.call_id(item)
