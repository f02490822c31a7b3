"""A fresh child: its lineage and, where they are given, a digest, a model's summary and the next step.

Deciding and acting are apart: ``plan`` touches nothing, ``write`` applies a plan once and reads it back.
The parent is only ever read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.derive.child.carried import carried_lines
from resume_hooks.derive.child.create import Birth, Born, bear, expect, receipt_of
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import NothingToHandOff, UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.digest import as_text, entries
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.redaction.texts import left_out, redact
from resume_hooks.sessions.lineage import Ancestor
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.opening_records import opening_lines, opening_text, title_line
from resume_hooks.sessions.references import SHORT
from resume_hooks.system.text import encodable, one_line, plain, plain_line
from resume_hooks.transcripts import invariants, tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.provenance import continue_line
from resume_hooks.transcripts.records import kind, message, parse

MAX_STEP = 20_000
"""Characters of a next step; more is a document, which belongs into a file that the step names."""


DIGEST_LINE = 3
"""The line of a child that holds its digest whole: after the metadata and the two records of the opening."""


class Contents(NamedTuple):
    """What a fresh child holds beside its lineage; ``summary`` is a model's, without blank lines.

    ``edited`` is what the user made of the digest's opening; the record that holds the digest whole stays as it is.
    """

    digest: Digest | None = None
    summary: str = ""
    edited: str = ""


NOTHING = Contents()


@dataclass(frozen=True, slots=True)
class RolloverPlan:
    """Everything that ``write`` needs; ``lines`` are the child's lines without endings."""

    birth: Birth
    opening: str
    lines: tuple[bytes, ...]
    tokens_before: int
    tokens_after: int
    contents: Contents = NOTHING


def plan(
    parent: SessionFile,
    where: Where,
    *,
    kind: str = "rollover",
    next_step: str = "",
    output_dir: str | None = None,
    contents: Contents = NOTHING,
    expected: Birth | None = None,
) -> RolloverPlan:
    """Decide on a child of ``parent``; ``kind`` is rollover or handoff, ``expected`` a birth decided on before.

    NothingToHandOff where nobody asked anything there yet, UsageError for what can't be a parent or a step.
    """
    glance = HeadTail(parent.path)
    _refuse(glance, next_step)
    next_step = encodable(next_step.strip())
    child = expected or expect(parent, glance, kind, where, output_dir)
    digest = contents.edited or opening_tier(contents.digest, child.session_id)
    text = opening_text(child.block, next_step, summary=contents.summary, digest=digest)
    card, _ = redact(_card(child.ancestors, kind, next_step, contents))
    lines = (
        continue_line(
            parent_id=parent.session_id,
            parent_file=child.parent_file,
            kind=kind,
            at=child.setting.at,
            summary=bool(contents.summary),
        ),
        *opening_lines(child.setting, text, card),
        *([entries.line(contents.digest)] if contents.digest else []),
        title_line(child.session_id, child.title),
        *carried_lines(glance, child.session_id),
    )
    return RolloverPlan(
        birth=child,
        opening=text,
        lines=lines,
        tokens_before=tokens.recent_context(parent.path).tokens,
        tokens_after=round((len(text) + len(card)) / tokens.CHARACTERS_PER_TOKEN),
        contents=contents,
    )


def opening_tier(digest: Digest | None, session_id: str) -> str:
    """The part of a digest that the child of that id opens with; ``""`` without one."""
    return as_text.opening(digest, session_id, DIGEST_LINE) if digest else ""


def digest_reference(session_id: str) -> str:
    """The reference of the record that holds the whole digest of the child of that id, as ``shown`` writes it."""
    return f"{session_id[:SHORT]}:{DIGEST_LINE}"


def write(decided: RolloverPlan, where: Where) -> Receipt:
    """Apply a plan. WriteFailed or CheckFailed leave nothing behind; a link that can't be kept is a warning."""
    chunks = (line + b"\n" for line in decided.lines)
    born = bear(decided.birth, chunks, lambda path: checks_of(decided, path), where)
    return receipt(decided, born)


def receipt(decided: RolloverPlan, born: Born | None = None) -> Receipt:
    """The receipt of a plan, applied or not."""
    found = receipt_of(decided.birth, born, tokens_before=decided.tokens_before, tokens_after=decided.tokens_after)
    given = decided.contents
    count = left_out([as_text.full(given.digest) if given.digest else "", given.summary, decided.birth.block])
    if not count:
        return found
    many = "secret was" if count == 1 else "secrets were"
    told = f"{count:,} {many} left out; the parent's records still have {'it' if count == 1 else 'them'}"
    return found._replace(warnings=(*found.warnings, told))


def _refuse(glance: HeadTail, next_step: str) -> None:
    if not glance.is_sidechain and not glance.own_turns:
        raise NothingToHandOff("There is nothing to hand off: nobody asked anything in this session yet")
    if len(next_step) > MAX_STEP:
        raise UsageError(
            f"The next step has {len(next_step):,} characters, more than {MAX_STEP:,}",
            "Put the long text into a file and name the file in the next step.",
        )


def _card(ancestors: Sequence[Ancestor], kind: str, next_step: str, contents: Contents) -> str:
    """What the screen shows of a fresh child: where it comes from, what is next, how to see more."""
    parent = ancestors[-1]
    verb = "Handed off from" if kind == "handoff" else "Rolled over from"
    lines = [f"**{verb}** {plain_line(parent.title)} (`{parent.session_id[:8]}`), {_generations(len(ancestors))}."]
    if next_step:
        lines.append(f"**Next step:** {one_line(plain(next_step), 300)}")
    loaded = [word for word, there in (("a summary", contents.summary), ("a digest", contents.digest)) if there]
    only = (
        f"Of the earlier conversation {' and '.join(loaded)} {'are' if len(loaded) > 1 else 'is'} loaded"
        if loaded
        else ""
    )
    lines.append(f"{only or 'Nothing of the earlier conversation is loaded'}; it can be searched and read on demand.")
    return "\n\n".join(lines)


def _generations(count: int) -> str:
    return "the first of its line" if count == 1 else f"{count} sessions back to the first"


def checks_of(decided: RolloverPlan, path: str) -> list[invariants.Check]:
    """What the child of a plan must hold as it is read back from ``path``."""
    return [
        *invariants.check_session(path, decided.birth.session_id),
        invariants.Check("the lineage and the next step are whole", opening_of(path) == decided.opening),
    ]


def opening_of(path: str) -> object:
    """What a fresh child opens with: the content of its first user entries. OSError where it can't be read."""
    with open(path, "rb") as stream:
        bodies = (line.body for line in read_lines(stream))
        return next((message(r).get("content") for body in bodies if (r := parse(body)) and kind(r) == "user"), None)
