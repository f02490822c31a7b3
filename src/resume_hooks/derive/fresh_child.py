"""What handoff and rollover both make: a fresh child with its lineage and, if given, digest, summary and next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.derive.child.bookkeeping import carried_lines
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write import Body, ChildPlan, Sizes
from resume_hooks.errors import NothingToHandOff, UsageError
from resume_hooks.reading.digest import as_text, entries
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.redaction.texts import left_out, redact
from resume_hooks.sessions.lineage import Ancestor
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.opening_layout import opening_lines, opening_text, task_step
from resume_hooks.sessions.record_references import SHORT
from resume_hooks.system.text import counted, encodable, one_line, plain, plain_line
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.records import USER, kind, message, parse

MAX_STEP = 20_000
"""Characters of a next step; more is a document, which belongs into a file that the step names."""


DIGEST_LINE = 3
"""The line of a child that holds its digest whole: after the metadata and the two records of the opening."""


class Contents(NamedTuple):
    """What a fresh child holds beside its lineage; ``summary`` is a model's, without blank lines.

    ``edited`` is what the user made of the digest's opening; the record that holds the digest whole stays as it is.
    With ``new_task`` the next step is no part of the parent's work, whose plan and task list stay with the parent.
    """

    digest: Digest | None = None
    summary: str = ""
    edited: str = ""
    new_task: bool = False


NOTHING = Contents()


class Opening(NamedTuple):
    """What a fresh child is told: ``text`` its model, ``card`` its screen; ``head`` is its first line."""

    child: Draft
    head: bytes
    text: str
    card: str
    ends: HeadTail
    sizes: Sizes
    contents: Contents = NOTHING


@dataclass(frozen=True, slots=True)
class FreshLines(Body):
    """The lines of a fresh child, without endings; ``opening`` is what its model reads first, None for any."""

    bodies: tuple[bytes, ...]
    opening: str | None = None

    def lines(self) -> Iterator[bytes]:
        """The lines with their endings."""
        return (body + b"\n" for body in self.bodies)

    def checks(self, path: str, plan: ChildPlan) -> list[Check]:
        """Every session's invariants, and that the opening is whole."""
        whole = Check("the lineage and the next step are whole", opening_of(path) == self.opening)
        return [*Body.checks(self, path, plan), *([] if self.opening is None else [whole])]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloverPlan(ChildPlan):
    """A fresh child; ``opening`` is what its model reads first."""

    opening: str
    contents: Contents = NOTHING

    @property
    def keeps_tasks(self) -> bool:
        """Whether the child goes on with the parent's task list."""
        return not self.contents.new_task and self.draft.agent == self.draft.parent_agent


def opening(
    parent: SessionFile, ends: HeadTail, child: Draft, next_step: str, contents: Contents, note: str = ""
) -> Opening:
    """What a child of ``parent`` is told: its lineage, a ``note``, what it holds, the next step."""
    digest = contents.edited or opening_tier(contents.digest, child)
    told = "\n".join(filter(None, (note, contents.summary)))
    step = task_step(next_step) if contents.new_task else next_step
    text = opening_text(child.block, step, summary=told, digest=digest)
    card, _ = redact(_card(child.ancestors, child.kind, next_step, contents))
    before = tokens.recent_context(parent.path).tokens
    sizes = Sizes(before, round((len(text) + len(card)) / tokens.CHARACTERS_PER_TOKEN))
    return Opening(child, child.head(summary=bool(contents.summary)), text, card, ends, sizes, contents)


def lines_of(told: Opening) -> FreshLines:
    """The lines of a child that is told this."""
    bodies = (
        told.head,
        *opening_lines(told.child.setting, told.text, told.card),
        *([entries.line(told.contents.digest)] if told.contents.digest else []),
        *carried_lines(told.ends, told.child.session_id),
    )
    return FreshLines(bodies, told.text)


def fresh(told: Opening, body: Body | None = None) -> RolloverPlan:
    """The plan of a child that is told this; ``body`` are its lines where another agent reads them."""
    child, contents = told.child, told.contents
    return RolloverPlan(
        draft=child,
        body=body or lines_of(told),
        sizes=told.sizes,
        remarks=on_secrets(child.block, contents),
        opening=told.text,
        contents=contents,
    )


def opening_tier(digest: Digest | None, child: Draft) -> str:
    """The part of a digest that a child opens with; ``""`` without one."""
    return as_text.opening(digest, child.session_id, DIGEST_LINE, read=child.command("read")) if digest else ""


def digest_reference(session_id: str) -> str:
    """The reference of the record that holds the whole digest of the child of that id, as ``shown`` writes it."""
    return f"{session_id[:SHORT]}:{DIGEST_LINE}"


def on_secrets(block: str, contents: Contents) -> tuple[str, ...]:
    """How many secrets were taken out of what the child holds."""
    digest = as_text.full(contents.digest) if contents.digest else ""
    count = left_out([digest, contents.summary, block])
    if not count:
        return ()
    were, them = ("was", "it") if count == 1 else ("were", "them")
    return (f"{counted(count, 'secret')} {were} left out; the parent's records still have {them}",)


def usable_step(ends: HeadTail, next_step: str) -> str:
    """The next step as a child is told it. NothingToHandOff, UsageError as ``plan``."""
    if not ends.is_sidechain and not ends.own_turns:
        raise NothingToHandOff("There is nothing to hand off: nobody asked anything in this session yet")
    if len(next_step) > MAX_STEP:
        raise UsageError(
            f"The next step has {len(next_step):,} characters, more than {MAX_STEP:,}",
            "Put the long text into a file and name the file in the next step.",
        )
    return encodable(next_step.strip())


def _card(ancestors: Sequence[Ancestor], kind: str, next_step: str, contents: Contents) -> str:
    """What the screen shows of a fresh child: where it comes from, what is next, how to see more."""
    parent = ancestors[-1]
    verb = "Handed off from" if kind == "handoff" else "Rolled over from"
    lines = [f"**{verb}** {plain_line(parent.title)} (`{parent.session_id[:8]}`), {_generations(len(ancestors))}."]
    if next_step:
        lines.append(f"**{'New task' if contents.new_task else 'Next step'}:** {one_line(plain(next_step), 300)}")
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


def opening_of(path: str) -> object:
    """What a fresh child opens with: the content of its first user record. OSError where it can't be read."""
    with open(path, "rb") as stream:
        bodies = (line.body for line in read_lines(stream))
        return next((message(r).get("content") for body in bodies if (r := parse(body)) and kind(r) == USER), None)
