"""Plan the fresh child of a handoff or a rollover.

The child contains the lineage and, optionally, a digest, a summary and a next step.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

from resume_hooks import questions, seam
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.inherited_metadata import copy_metadata_lines
from resume_hooks.derive.child.receipt import AccompanyingFiles, Receipt
from resume_hooks.derive.child.write_child import ChildBody, ChildPlan, Sizes
from resume_hooks.errors import NothingToHandOff, UsageError
from resume_hooks.paths import Where, open_regular
from resume_hooks.reading.digest import entries
from resume_hooks.reading.digest.calls import collect_latest_calls
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.reading.digest.opening import (
    DEFAULT_OPENING_TOKENS,
    convert_tokens_to_characters,
    has_section,
)
from resume_hooks.reading.digest.opening import Opening as DigestOpening
from resume_hooks.reading.digest.opening import format_opening as digest_opening
from resume_hooks.reading.digest.sections import (
    CHANGED_FILES_SECTION,
    COMMANDS_SECTION,
    ERRORS_SECTION,
    FAILURES_SECTION,
    OTHER_COMMANDS_SECTION,
    READ_FILES_SECTION,
    REFUSALS_SECTION,
)
from resume_hooks.redaction.texts import count_placeholders, redact
from resume_hooks.sessions.lineage import Ancestor
from resume_hooks.sessions.lineage_block import replace_block_markers
from resume_hooks.sessions.opening_layout import make_new_task_step, opening_lines, opening_text
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import (
    collapse_line,
    format_count,
    plain_line,
    plain_text,
    replace_surrogates,
)
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.api_usage import measure_first_request
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS, HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import USER, get_kind, get_message, parse_record

# Maximum number of characters in a next step. A longer text belongs in a file that the next step
# names.
MAX_NEXT_STEP_CHARACTERS = 20_000
TITLE_LINE_NUMBER = 1
"""The line number of a child's title.

The title is before the opening and within the first 64 KB of the file, which clients read for their
lists of sessions.
"""

OPENING_RECORD_LINE_NUMBER = 2
# Line number of the record with a child's whole digest. The card is on the next line.
DIGEST_LINE_NUMBER = 3

# The folder inside the config folder in which the client keeps one Markdown file for each plan. The
# records of a session contain the name of its plan's file.
PLANS_FOLDER_NAME = "plans"
_PLAN_NAME_PATTERN = re.compile(r"[a-z0-9-]{1,200}")
# A fresh child has no plan of its own until it enters plan mode, so its ancestors are searched for
# a plan, but not more than this number of them.
MAX_PLAN_ANCESTORS = 5
# The first line of a plan is searched for only in this number of bytes at the plan's start.
_MAX_READ_PLAN_BYTES = 4096

DIGEST_SECTIONS_BY_LIST_NAME = (
    ("files", (CHANGED_FILES_SECTION, READ_FILES_SECTION)),
    ("commands", (COMMANDS_SECTION, OTHER_COMMANDS_SECTION)),
    ("failures", (ERRORS_SECTION, FAILURES_SECTION, REFUSALS_SECTION)),
)
"""Maps each list that a child's card can mention to the sections of the opening that contain the
list."""


class ChildContents(NamedTuple):
    """The contents of a fresh child in addition to its lineage.

    ``summary`` comes from a model and has no blank lines. ``opening_tokens`` is the size of the
    opening. If the user edited the digest, ``edited_digest`` is the edited text. The opening shows
    this text, but the record with the whole digest keeps the original. If ``starts_new_task`` is
    true, the next step does not belong to the parent's work, so the child does not inherit the plan
    and the task list.
    """

    digest: Digest | None = None
    summary: str = ""
    edited_digest: str = ""
    starts_new_task: bool = False
    opening_tokens: int = DEFAULT_OPENING_TOKENS


EMPTY_CHILD_CONTENTS = ChildContents()
NO_DIGEST_OPENING = DigestOpening("")


class FreshOpening(NamedTuple):
    """The opening of a fresh child, and all other data that the plan of the child needs.

    ``text`` is for the child's model, and ``screen_text`` is for the screen. ``first_line`` is the
    child's first line. ``digest_opening`` is the digest that ``text`` contains, or an empty one if
    the user edited the digest.
    """

    child: Draft
    first_line: bytes
    text: str
    screen_text: str
    parent_ends: HeadTail
    sizes: Sizes
    contents: ChildContents = EMPTY_CHILD_CONTENTS
    digest_opening: DigestOpening = NO_DIGEST_OPENING


@dataclass(frozen=True, slots=True)
class FreshLines(ChildBody):
    """The lines of a fresh child.

    ``unterminated_lines`` are the lines without their line endings. ``opening`` is the first text
    for the child's model. After the child is written, this text is checked, unless it is None.
    """

    title_line_number: ClassVar[int | None] = TITLE_LINE_NUMBER
    unterminated_lines: tuple[bytes, ...]
    opening: str | None = None

    def lines(self) -> Iterator[bytes]:
        """Return the lines with their line endings."""
        return (body + b"\n" for body in self.unterminated_lines)

    def run_checks(self, path: str, plan: ChildPlan) -> list[Check]:
        """Return the checks that every session must pass, and the check that the opening is complete."""
        opening_check = Check(
            "the lineage and the next step are complete", read_opening(path) == self.opening
        )
        return [
            *ChildBody.run_checks(self, path, plan),
            *([] if self.opening is None else [opening_check]),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshChildPlan(ChildPlan):
    """The plan of a fresh child.

    ``opening`` is the first text for the child's model. ``digest_opening`` is the digest in that
    text.
    """

    opening: str
    contents: ChildContents = EMPTY_CHILD_CONTENTS
    digest_opening: DigestOpening = NO_DIGEST_OPENING

    @property
    def copies_tasks(self) -> bool:
        """Whether the parent's task list is copied for the child."""
        return not self.contents.starts_new_task and self.draft.continues_same_work


def make_opening(
    parent: Session,
    parent_ends: HeadTail,
    child: Draft,
    next_step: str,
    contents: ChildContents,
    where: Where,
    note: str = "",
) -> FreshOpening:
    """Return the opening of a child of ``parent``.

    The opening consists of the lineage, the ``note``, the contents and the next step.
    """
    contents = _redact_digest(contents, child)
    if contents.edited_digest:
        digest_opening = NO_DIGEST_OPENING
    else:
        digest_opening = shorten_digest_to_fit(contents, child, parent)
    summary = "\n".join(filter(None, (note, contents.summary)))
    if contents.starts_new_task:
        step = make_new_task_step(next_step)
    else:
        step = next_step
    text = opening_text(
        child.lineage_text,
        step,
        summary=summary,
        digest=contents.edited_digest or digest_opening.text,
    )
    card, _ = redact(_format_card(child, next_step, contents, digest_opening))
    tokens_before = parent.context.tokens
    base_tokens = min(measure_first_request(parent_ends, where).tokens, tokens_before)
    sizes = Sizes(
        tokens_before, base_tokens + round((len(text) + len(card)) / tokens.CHARACTERS_PER_TOKEN)
    )
    size = ChildSize(
        sizes.tokens_after,
        tokens.CHARACTERS_PER_TOKEN,
        tokens.detect_large_window(parent.file, tokens_before),
    )
    opening_tokens = contents.opening_tokens if contents.digest else 0
    first_line = child.make_first_line(
        size, has_summary=bool(contents.summary), opening_tokens=opening_tokens
    )
    return FreshOpening(child, first_line, text, card, parent_ends, sizes, contents, digest_opening)


def make_opening_lines(opening: FreshOpening) -> FreshLines:
    """Return the lines of a Claude Code child with this opening."""
    child, digest = opening.child, opening.contents.digest
    prompt_line, answer_line = opening_lines(child.attributes, opening.text, opening.screen_text)
    lines = [opening.first_line, prompt_line]
    if digest:
        lines.append(entries.format_digest_record(digest))
    lines.append(answer_line)
    lines += copy_metadata_lines(opening.parent_ends, child.session_id, redactor=child.redactor)
    return FreshLines(tuple(lines), opening.text)


def plan_fresh_opening(opening: FreshOpening, body: ChildBody) -> FreshChildPlan:
    """Return the plan of a child with this opening.

    ``body`` contains the lines of the child in the format of its agent.
    """
    child, contents = opening.child, opening.contents
    return FreshChildPlan(
        draft=child,
        body=body,
        sizes=opening.sizes,
        remarks=make_secrets_warning(child.lineage_text, contents),
        opening=opening.text,
        contents=contents,
        digest_opening=opening.digest_opening,
    )


def _redact_digest(contents: ChildContents, child: Draft) -> ChildContents:
    """Remove from the digest all secrets that were found at the start and end of the parent.

    The digest is stored in the child, where a later child of this child reads it.
    """
    if contents.digest is None or child.redactor is None or not child.redactor.has_known_values:
        return contents
    return contents._replace(digest=entries.rewrite_digest(contents.digest, child.redactor.redact))


def shorten_digest_to_fit(
    contents: ChildContents, child: Draft, parent: SessionFile
) -> DigestOpening:
    """Return the digest for a child's opening, shortened to the space that the summary leaves.

    If there is no digest, the result is empty.
    """
    if contents.digest is None:
        return NO_DIGEST_OPENING
    available_characters = convert_tokens_to_characters(contents.opening_tokens) - len(
        contents.summary
    )
    # For a new task, the parent's latest calls are not useful.
    if contents.starts_new_task:
        omitted_calls = None
    else:
        omitted_calls = partial(collect_latest_calls, parent, contents.digest)
    whole_reference = f"{child.session_id}:{DIGEST_LINE_NUMBER}"
    return digest_opening(
        contents.digest,
        available_characters,
        collect_calls=omitted_calls,
        record_ref=whole_reference,
        read_command=child.make_command("read"),
    )


def format_digest_reference(session_id: str) -> str:
    """Return the reference to a child's whole digest, in the form that the opening shows."""
    return f"{session_id[:SHORT_ID_CHARACTERS]}:{DIGEST_LINE_NUMBER}"


def make_secrets_warning(block: str, contents: ChildContents) -> tuple[str, ...]:
    """Return a warning that states how many secrets were removed from the child's contents.

    If no secret was removed, return an empty tuple.
    """
    texts = entries.iterate_digest_texts(contents.digest) if contents.digest else ()
    count = count_placeholders([*texts, contents.summary, block])
    if not count:
        return ()
    be_form, pronoun = ("was", "it") if count == 1 else ("were", "them")
    return (
        f"{format_count(count, 'secret')} {be_form} left out; the parent's records still contain {pronoun}",
    )


def validate_next_step(parent_ends: HeadTail, next_step: str) -> str:
    """Return the next step in the form in which the child shows it.

    Raises NothingToHandOff if the session has no prompt, and UsageError if the step is too long.
    """
    if parent_ends.is_blank:
        raise NothingToHandOff("There is nothing to hand off: this session has no prompt yet")
    if len(next_step) > MAX_NEXT_STEP_CHARACTERS:
        raise UsageError(
            f"The next step has {len(next_step):,} characters, more than {MAX_NEXT_STEP_CHARACTERS:,}",
            "Put the long text into a file and name the file in the next step.",
        )
    return replace_surrogates(next_step.strip())


def _format_card(
    child: Draft, next_step: str, contents: ChildContents, digest_opening: DigestOpening
) -> str:
    """Return the card of a fresh child, which names its source, its next step and its contents."""
    parent, count = child.ancestors[-1], len(child.ancestors)
    lineage_position = f", session {count} of its lineage" if count > 1 else ""
    if child.kind == "handoff":
        verb = "Handed off from"
    else:
        verb = "Rolled over from"
    if child.subagent:
        subagent = f"`{replace_block_markers(plain_line(child.subagent))}` of "
    else:
        subagent = ""
    # The client shows the card as Markdown. A backtick in the title could start a code span that
    # never ends.
    title = replace_block_markers(plain_line(parent.title)).replace("`", "'")
    lines = [f"**{verb}** {subagent}{title} (`{parent.session_id}`){lineage_position}."]
    if next_step:
        lines.append(
            f"**{'New task' if contents.starts_new_task else 'Next step'}:** "
            f"{collapse_line(plain_text(next_step), 300)}"
        )
    loaded_contents = ", ".join(_describe_contents(contents, digest_opening)) or "nothing"
    lines.append(
        f"Loaded: {loaded_contents}. All that was said can be searched and read on demand."
    )
    return "\n\n".join(lines)


def _describe_contents(contents: ChildContents, digest_opening: DigestOpening) -> list[str]:
    """Return phrases for the card that name the contents of the opening."""
    phrases = ["a summary by a model"] if contents.summary else []
    if contents.edited_digest:
        return [*phrases, "the edited digest"]
    lists = _describe_lists(digest_opening.text)
    if contents.starts_new_task:
        return [f"{lists}, but no messages" if lists else "no messages"]
    if contents.digest:
        if digest_opening.omitted_message_count:
            omission_note = f" ({digest_opening.omitted_message_count:,} left out)"
        else:
            omission_note = ""
        phrases.append(f"{format_count(digest_opening.message_count, 'message')}{omission_note}")
        if lists:
            phrases.append(lists)
    return phrases


def _describe_lists(opening_text: str) -> str:
    """Return a phrase that names the lists in an opening, or ``""`` if it contains none."""
    names = []
    for name, sections in DIGEST_SECTIONS_BY_LIST_NAME:
        if any(has_section(opening_text, section) for section in sections):
            names.append(name)
    if not names:
        return ""
    *first_names, last_name = names
    if not first_names:
        return f"a list of {last_name}"
    return f"lists of {', '.join(first_names)} and {last_name}"


def read_opening(path: str) -> object:
    """Return the opening of a fresh child, which is the content of its first user record.

    Raises OSError if the file is unreadable.
    """
    with open(path, "rb") as stream:
        unterminated_lines = (line.body for line in read_lines(stream))
        return next(
            (
                get_message(record).get("content")
                for body in unterminated_lines
                if (record := parse_record(body)) and get_kind(record) == USER
            ),
            None,
        )


def make_file_writer(
    plan: FreshChildPlan, where: Where, options: object = None
) -> Callable[[Receipt | None], AccompanyingFiles]:
    """Return a function that writes the files that accompany a handoff.

    The function comes from the add-on part that answers ``questions.make_handoff_file_writer``. If
    there is no such part, the function writes no files.
    """
    for make_handoff_file_writer in seam.find_answers(questions.make_handoff_file_writer):
        return make_handoff_file_writer(plan, where, options)
    return lambda _: AccompanyingFiles()


def find_line_about_plan(parent_ends: HeadTail, ancestors: Sequence[Ancestor], where: Where) -> str:
    """Return a line about a session's plan.

    If the session has no plan, the line is about the plan of the latest ancestor that has one.
    ``ancestors`` starts with the oldest one. If no plan exists, the result is ``""``.
    """
    if note := format_plan_note(parent_ends, where):
        return note
    paths = []
    for ancestor in reversed(ancestors):
        if ancestor.session_file != parent_ends.path:
            paths.append(ancestor.session_file)
    existing_paths = [path for path in paths if os.path.isfile(path)][:MAX_PLAN_ANCESTORS]
    return next(
        (note for path in existing_paths if (note := format_plan_note(HeadTail(path), where))), ""
    )


def format_plan_note(parent_ends: HeadTail, where: Where) -> str:
    """Return a line with the path and title of a session's plan, or ``""`` if the session has no plan."""
    if not _PLAN_NAME_PATTERN.fullmatch(parent_ends.plan_slug):
        return ""
    path = os.path.join(where.config, PLANS_FOLDER_NAME, f"{parent_ends.plan_slug}.md")
    try:
        with open_regular(path, follow=False) as stream:
            first_line = stream.read(_MAX_READ_PLAN_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    title = next(
        (line for row in first_line.split("\n") if (line := plain_line(row).lstrip("# "))), ""
    )
    if title:
        title_in_brackets = (
            f" ({redact(replace_block_markers(collapse_line(title, MAX_TITLE_CHARACTERS)))[0]})"
        )
    else:
        title_in_brackets = ""
    return (
        f"The plan for this work{title_in_brackets} is in the file {replace_block_markers(plain_line(path))}: read it "
        "before you continue."
    )
