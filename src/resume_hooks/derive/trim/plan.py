"""A trim: a child with the live chain of its parent, in which bulky contents are placeholders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from resume_hooks.derive.child.bookkeeping import books_of
from resume_hooks.derive.child.draft import Draft, draft
from resume_hooks.derive.child.rewrite_chain import ChainRewrite, chain_rewrite
from resume_hooks.derive.child.write import Sizes
from resume_hooks.derive.originals import Originals
from resume_hooks.derive.trim.calibration import Scale, weigh
from resume_hooks.derive.trim.candidates import TrimMaterial, material
from resume_hooks.derive.trim.decision import (
    ASSISTANT,
    BEFORE,
    USER,
    Decision,
    Trimmable,
    TrimPlan,
    Words,
    decide,
    parameters,
    stats,
    tools_trimmed,
)
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.selection import Origins, edits_of, without_screens
from resume_hooks.errors import NothingToTrim
from resume_hooks.paths import Where
from resume_hooks.reading.outline_scan import first_words
from resume_hooks.sessions.archived.sessions import own_path
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import ChildSize, Trim
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.tail_scan import scan_live
from resume_hooks.transcripts.tokens import ContextUse
from resume_hooks.transcripts.transcript import Transcript, scan
from resume_hooks.transcripts.trimmable_pieces import Piece, Pieces
from resume_hooks.transcripts.write_scan import WriteScan

LEGEND = (
    "Text such as [Results from Read tool suppressed - ...; original: 1a2b3c4d:56] stands for contents that were "
    "trimmed from this conversation; `resume-hooks read 1a2b3c4d:56` prints an original."
)
"""What follows the lineage block of a trimmed child, so that each placeholder need not say it."""


@dataclass(frozen=True, slots=True)
class SessionScan:
    """A session as a trim reads it, once: what is in it, and what it weighs."""

    session: SessionFile
    transcript: Transcript
    pieces: Pieces
    survey: WriteScan
    glance: HeadTail
    context: ContextUse
    scale: Scale

    def material(self, options: Options) -> TrimMaterial:
        """What can be trimmed of it."""
        return material(self.transcript, self.pieces, options, self.glance.folders)

    def origins(self, where: Where) -> Origins:
        """Where the originals of its records are; a record whose mark leads nowhere any more is its own original."""
        nodes = {node.number: node for node in self.transcript.chain}
        originals = Originals(where)

        def leads(number: int) -> bool:
            return originals.of(self.transcript.read(nodes[number]), self.session.path) is not None

        uuids = {number: node.uuid for number, node in nodes.items()}
        named = own_path(self.session.path, where)
        return Origins(self.session.session_id, named, self.pieces.origins, uuids, leads)

    def values(self, pieces: Iterable[Piece]) -> Iterator[Any]:
        """Read from disk; neighbours in one record cost one read."""
        nodes = {node.number: node for node in self.transcript.chain}
        number, record = -1, Record()
        for piece in pieces:
            if piece.number != number:
                number, record = piece.number, self.transcript.read(nodes[piece.number])
            value: Any = record
            for key in piece.address:
                value = value[key]
            yield value

    def said(self) -> Iterator[Words]:
        """Prompts, answers and summaries, read from disk."""
        for place, node in enumerate(self.transcript.chain):
            if node.prompt or node.kind == records.ASSISTANT or node.summary:
                record = self.transcript.read(node)
                who = USER if node.prompt else BEFORE if node.summary else ASSISTANT
                text = records.prompt_text(record) if node.prompt else records.text(record)
                yield Words(place, who, text, first_words(record) if node.prompt else text)

    def body(self, child: Draft, head: bytes, options: Options, decision: Decision) -> ChainRewrite:
        """The same live chain."""
        edits = edits_of(decision.choices, decision.origins)
        if options.screen:
            edits |= without_screens(edits, self.transcript.chain, decision.origins, options.screen)
        return chain_rewrite(
            child,
            self.transcript,
            self.survey,
            head=head,
            lineage=f"{child.block}\n{LEGEND}",
            edits=edits,
            books=books_of(self.transcript, self.survey, self.glance, child.session_id),
            shrunk=True,
            thoughts=decision.thoughts,
        )


def read(session: SessionFile, window: int = 0, *, whole: bool = False) -> SessionScan:
    """Scan a session for a trim: its live part, or the ``whole``. NothingToTrim if there is no conversation."""
    if whole:
        pieces, survey = Pieces(), WriteScan()
        transcript = scan(session.path, observers=(pieces, survey))
    else:
        transcript, (pieces, survey) = scan_live(session.path, lambda: (Pieces(), WriteScan()))
    if not any(node.said for node in transcript.chain):
        raise NothingToTrim(
            "There is nothing to trim: this session holds no conversation",
            "Send a prompt first; if one was answered here, see what is broken: resume-hooks fsck.",
        )
    context, scale = weigh(session.path, transcript.chain, pieces, window)
    return SessionScan(session, transcript, pieces, survey, HeadTail(session.path), context, scale)


def plan(
    scanned: SessionScan, where: Where, options: Options, *, output_dir: str | None = None, method: str = "rules"
) -> TrimPlan:
    """Decide on a trimmed child. UsageError for options that can't be meant, or what can't be a parent."""
    decision = decide(scanned, options, where)
    child = draft(scanned.session, scanned.glance, "trim", where, output_dir)
    return plan_of(scanned, child, options, decision, method)


def plan_of(scanned: Trimmable, child: Draft, options: Options, decision: Decision, method: str) -> TrimPlan:
    """The child of a decision that was made by a ``method``."""
    head = child.head(
        ChildSize(decision.after.tokens, decision.savings.ratio),
        trim=Trim({**parameters(options), "method": method}, stats(decision)),
    )
    tools = tools_trimmed(decision.choices)
    return TrimPlan(
        draft=child,
        body=scanned.body(child, head, options, decision),
        sizes=Sizes(decision.before.tokens, decision.after.tokens, decision.savings.characters, tools),
        options=options,
        decision=decision,
    )
