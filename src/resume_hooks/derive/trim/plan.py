"""Plan a trim: measure the pieces that can be trimmed, choose some of them, and count the savings.

The child has the records of its parent, with placeholders instead of the trimmed contents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

from resume_hooks.derive.child.draft import Draft, make_draft
from resume_hooks.derive.child.inherited_metadata import copy_lines_after_chain
from resume_hooks.derive.child.rewrite_chain import ChainRewrite, plan_chain_rewrite
from resume_hooks.derive.child.write_child import ChildBody, ChildPlan, Sizes
from resume_hooks.derive.originals import OriginalFinder
from resume_hooks.derive.trim.options import DEFAULT_KEPT_TURN_COUNT, RULE_DESCRIPTIONS, Options
from resume_hooks.derive.trim.rules import TrimMaterial, collect_trim_material
from resume_hooks.derive.trim.selection import (
    Choice,
    RecordOrigins,
    Savings,
    SavingsRow,
    add_edits_of_large_results,
    choose_pieces,
    count_savings,
    make_trim_edits,
)
from resume_hooks.errors import NothingToTrim
from resume_hooks.paths import Where
from resume_hooks.reading.outline import extract_first_words
from resume_hooks.sessions.archived.sessions import client_path
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import collapse_line, format_count, plain_line
from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.calibration import TokenScale
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import ChildSize, TrimRecord
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.tokens import ContextSize
from resume_hooks.transcripts.transcript import Transcript, scan_live_records, scan_transcript
from resume_hooks.transcripts.trimmable_pieces import (
    RESULT_PIECE,
    TEXT_PIECE,
    THINKING_PIECE,
    Piece,
    PieceCollector,
)
from resume_hooks.transcripts.write_scan import CopyPreparationObserver

PLACEHOLDER_LEGEND = (
    "Text such as [Results from Read tool suppressed - ...; original: 1a2b3c4d:56] stands for contents that were "
    "trimmed from this conversation; `resume-hooks read 1a2b3c4d:56` prints an original."
)
"""The explanation of placeholders, which follows the lineage block of a trimmed child."""

USER, ASSISTANT, EARLIER_SUMMARY = "the user", "the assistant", "summary of what came before"


class ConversationMessage(NamedTuple):
    """A message of the conversation.

    ``message_index`` is the position of the message in the list of records or of pieces from which
    it was made. ``text_beginning`` is the start of the message's text.
    """

    message_index: int
    speaker: str
    text: str
    text_beginning: str


class TrimmableSession(Protocol):
    """A session of any agent, with the methods that trimming needs."""

    @property
    def session(self) -> SessionFile:
        """The scanned session."""

    @property
    def context(self) -> ContextSize:
        """The size of the context that the client would send."""

    @property
    def scale(self) -> TokenScale:
        """The scale that converts the size of pieces to tokens."""

    def collect_trim_material(self, options: Options) -> TrimMaterial:
        """Return the pieces that can be trimmed."""

    def find_origins(self, where: Where) -> RecordOrigins:
        """Return the originals of the session's records."""

    def read_contents(self, pieces: Iterable[Piece]) -> Iterator[Any]:
        """Yield the content of each piece."""

    def read_messages(self) -> Iterator[ConversationMessage]:
        """Yield the messages of the user and of the assistant, oldest first."""

    def make_body(
        self, child: Draft, first_line: bytes, options: Options, decision: TrimDecision
    ) -> ChildBody:
        """Return the body of a trimmed child. ``first_line`` is the child's first line."""


class TrimDecision(NamedTuple):
    """The pieces that a trim replaces, and the effect of the trim.

    ``context_before`` and ``context_after`` are the sizes of the context that the client would
    send. ``thinking_hashes`` contains hashes of the remaining thinking. ``unknown_tools``
    contains tools that the options name but that were never called.
    """

    choices: tuple[Choice, ...]
    savings: Savings
    context_before: ContextSize
    context_after: ContextSize
    thinking_hashes: frozenset[int]
    origins: RecordOrigins
    unknown_tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPlan(ChildPlan):
    """The plan of a trimmed child, with the savings that a preview shows to the user.

    ``trimmable_parent`` is the scan of the parent.
    """

    options: Options
    decision: TrimDecision
    trimmable_parent: TrimmableSession

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The pieces to trim."""
        return self.decision.choices

    @property
    def savings(self) -> Savings:
        """The savings of the trim."""
        return self.decision.savings

    @property
    def context_before(self) -> ContextSize:
        """The size of the context that the client would send for the parent."""
        return self.decision.context_before

    @property
    def context_after(self) -> ContextSize:
        """The size of the context that the client would send for the child."""
        return self.decision.context_after

    @property
    def is_worthwhile(self) -> bool:
        """Whether the trim saves enough to justify a new session."""
        return bool(self.options.max_screen_record_bytes) or (
            bool(self.choices) and self.savings.tokens >= self.options.min_savings
        )

    @property
    def is_child_unneeded(self) -> bool:
        """Whether the trim saves too little to justify a new session."""
        return not self.is_worthwhile

    @property
    def lineage_only_child_tokens(self) -> int:
        """The size in tokens that a child with only the lineage would have."""
        return round(len(self.draft.lineage_text) / tokens.CHARACTERS_PER_TOKEN)


def decide_trim(trimmable_parent: TrimmableSession, options: Options, where: Where) -> TrimDecision:
    """Choose the pieces to trim, and count the savings.

    Raises UsageError if the options name an unknown rule.
    """
    origins, trimmable = (
        trimmable_parent.find_origins(where),
        trimmable_parent.collect_trim_material(options),
    )
    choices = choose_pieces(
        trimmable, options, origins, trimmable_parent.scale, trimmable_parent.context.tokens
    )
    return make_decision(trimmable_parent, options, trimmable, choices, origins)


def make_decision(
    trimmable_parent: TrimmableSession,
    options: Options,
    trimmable: TrimMaterial,
    choices: Sequence[Choice],
    origins: RecordOrigins,
) -> TrimDecision:
    """Return the decision to trim the pieces in ``choices``, with the resulting savings.

    Rules or a model chose these pieces from ``trimmable``.
    """
    before = trimmable_parent.context
    savings = count_savings(choices, origins, trimmable_parent.scale, before.tokens)
    trimmed_keys = {(choice.piece.line_number, choice.piece.address) for choice in choices}
    thinking_hashes = set()
    for piece in trimmable.pieces:
        if piece.kind == THINKING_PIECE and (piece.line_number, piece.address) not in trimmed_keys:
            thinking_hashes.add(piece.content_hash)
    called_tools = {call.tool.lower() for call in trimmable.calls.values()}
    unknown_tools = []
    for name in options.tools:
        if not any(fnmatchcase(tool, name) for tool in called_tools):
            unknown_tools.append(name)
    return TrimDecision(
        choices=tuple(choices),
        savings=savings,
        context_before=before,
        context_after=before._replace(tokens=before.tokens - savings.tokens),
        thinking_hashes=frozenset(thinking_hashes),
        origins=origins,
        unknown_tools=tuple(unknown_tools),
    )


def plan_trim(
    scanned: SessionScan,
    where: Where,
    options: Options,
    *,
    output_dir: str | None = None,
    method: str = "rules",
) -> TrimPlan:
    """Plan a trimmed child of the scanned session.

    Raises UsageError for invalid options or an unusable parent.
    """
    decision = decide_trim(scanned, options, where)
    child = make_draft(scanned.session, scanned.head_tail, "trim", where, output_dir)
    return plan_trim_from_decision(scanned, child, options, decision, method)


def plan_trim_from_decision(
    scanned: TrimmableSession, child: Draft, options: Options, decision: TrimDecision, method: str
) -> TrimPlan:
    """Plan a trimmed child from a decision that was already made.

    ``method`` tells how the pieces were chosen: by ``rules``, by a model, or with the options of a
    ``slim`` copy. It is recorded in the child's first line.
    """
    tools = len(
        {choice.piece.call_id for choice in decision.choices if choice.piece.kind == RESULT_PIECE}
    )
    parameters = {
        "target_tools": list(options.tools),
        "threshold": options.get_threshold_of_tool(""),
        "trim_assistant_messages": options.assistant or False,
        "keep_recent": DEFAULT_KEPT_TURN_COUNT
        if options.keep_recent is None
        else options.keep_recent,
        "rules": options.rules(),
        "method": method,
    }
    stats = {
        "original_tokens": decision.context_before.tokens,
        "trimmed_tokens": decision.context_after.tokens,
        "tools_trimmed": tools,
        "assistant_trimmed": sum(choice.piece.kind == TEXT_PIECE for choice in decision.choices),
        "chars_saved": decision.savings.saved_character_count,
    }
    first_line = child.make_first_line(
        ChildSize(
            decision.context_after.tokens,
            decision.savings.characters_per_token,
            tokens.detect_large_window(scanned.session.file, decision.context_before.tokens),
        ),
        trim=TrimRecord(parameters, stats),
    )
    return TrimPlan(
        draft=child,
        body=scanned.make_body(child, first_line, options, decision),
        sizes=Sizes(
            decision.context_before.tokens,
            decision.context_after.tokens,
            decision.savings.saved_character_count,
            tools,
        ),
        options=options,
        decision=decision,
        trimmable_parent=scanned,
    )


@dataclass(frozen=True, slots=True)
class SessionScan:
    """The result of scanning a session for a trim: its contents and their sizes."""

    session: SessionFile
    transcript: Transcript
    piece_collector: PieceCollector
    preparation_observer: CopyPreparationObserver
    head_tail: HeadTail
    context: ContextSize
    scale: TokenScale

    def collect_trim_material(self, options: Options) -> TrimMaterial:
        """Return the pieces of the live chain that can be trimmed."""
        return collect_trim_material(
            self.transcript, self.piece_collector, options, self.head_tail.folders
        )

    def find_origins(self, where: Where) -> RecordOrigins:
        """Return the originals of the session's records.

        If a record was trimmed and the original that it names no longer exists, the record itself
        is its original.
        """
        nodes = {node.line_number: node for node in self.transcript.chain}
        originals = OriginalFinder(where)

        def does_original_exist(line_number: int) -> bool:
            return (
                originals.find_original(
                    self.transcript.read_record(nodes[line_number]), self.session.path
                )
                is not None
            )

        uuids = {number: node.uuid for number, node in nodes.items()}
        client_file = client_path(self.session.path, where)
        return RecordOrigins(
            self.session.session_id,
            client_file,
            self.piece_collector.origins,
            uuids,
            does_original_exist,
        )

    def read_contents(self, pieces: Iterable[Piece]) -> Iterator[Any]:
        """Yield the content of each piece, read from the transcript.

        If consecutive pieces belong to the same record, the record is read only once.
        """
        nodes = {node.line_number: node for node in self.transcript.chain}
        number, record = -1, Record()
        for piece in pieces:
            if piece.line_number != number:
                number, record = (
                    piece.line_number,
                    self.transcript.read_record(nodes[piece.line_number]),
                )
            value: Any = record
            for key in piece.address:
                value = value[key]
            yield value

    def read_messages(self) -> Iterator[ConversationMessage]:
        """Yield the prompts, answers and summaries of the live chain, read from the transcript."""
        for index, node in enumerate(self.transcript.chain):
            if node.is_prompt or node.kind == records.ASSISTANT or node.is_summary:
                record = self.transcript.read_record(node)
                if node.is_prompt:
                    speaker = USER
                elif node.is_summary:
                    speaker = EARLIER_SUMMARY
                else:
                    speaker = ASSISTANT
                if node.is_prompt:
                    text = records.prompt_text(record)
                else:
                    text = records.join_text_blocks(record)
                yield ConversationMessage(
                    index, speaker, text, extract_first_words(record) if node.is_prompt else text
                )

    def make_body(
        self, child: Draft, first_line: bytes, options: Options, decision: TrimDecision
    ) -> ChainRewrite:
        """Return the body of the child: the live chain with trimmed records."""
        edits = make_trim_edits(decision.choices, decision.origins)
        if options.max_screen_record_bytes:
            edits |= add_edits_of_large_results(
                edits, self.transcript.chain, decision.origins, options.max_screen_record_bytes
            )
        return plan_chain_rewrite(
            child,
            self.transcript,
            self.preparation_observer,
            first_line=first_line,
            lineage=f"{child.lineage_text}\n{PLACEHOLDER_LEGEND}",
            edits=edits,
            metadata_lines=copy_lines_after_chain(
                self.transcript, self.preparation_observer, self.head_tail, child.session_id
            ),
            clears_token_counts=True,
            allowed_thinking_hashes=decision.thinking_hashes,
        )


def scan_session(session: SessionFile, *, reads_whole_file: bool = False) -> SessionScan:
    """Scan a session for a trim: only its live part, or the whole file if ``reads_whole_file`` is true.

    Raises NothingToTrim if the session has no conversation.
    """
    if reads_whole_file:
        pieces, preparation_observer = PieceCollector(), CopyPreparationObserver()
        transcript = scan_transcript(session.file, observers=(pieces, preparation_observer))
    else:
        transcript, (pieces, preparation_observer) = scan_live_records(
            session.file, lambda: (PieceCollector(), CopyPreparationObserver())
        )
    if not any(node.is_in_conversation for node in transcript.chain):
        raise NothingToTrim(
            "There is nothing to trim: this session has no conversation",
            "Send a prompt first. If a prompt was answered here, the file is damaged: resume-hooks fsck shows how.",
        )
    loaded_session = Session.from_file(session, Where())
    context, scale = loaded_session.measure_chain(transcript.chain, pieces)
    return SessionScan(
        session, transcript, pieces, preparation_observer, loaded_session.head_tail, context, scale
    )


# A slim copy trims contents with more characters than this number. Records with more bytes than the
# same number also lose the screen's copy of a result.
MIN_LARGE_CONTENT_CHARACTERS = 10_000

SLIM_OPTIONS = Options(
    threshold=MIN_LARGE_CONTENT_CHARACTERS,
    keep_recent=0,
    only=("attachments", "media", "results", "inputs", "pasted"),
    min_savings=0,
    max_screen_record_bytes=MIN_LARGE_CONTENT_CHARACTERS,
)
"""The options of a slim copy. Large contents are trimmed even in recent turns, but the texts of
messages are kept."""


def plan_slim_copy(session: SessionFile, where: Where) -> TrimPlan:
    """Plan a slim copy, in which all large contents except the texts of messages are trimmed.

    Raises NothingToTrim if the session has no conversation, and UsageError if no child can be made
    from it.
    """
    return plan_trim(scan_session(session), where, SLIM_OPTIONS, method="slim")


MAX_LISTED_PIECES = 5  # Maximum number of pieces that a preview lists individually.
# Maximum number of rows of a table. Longer tables would not fit, because the client shows only the
# first 60 lines of a message.
MAX_TABLE_ROWS = 12
MAX_CARD_COLUMNS = 72
MAX_NAME_COLUMNS = 42  # Maximum width of a piece's name in a card, in columns.


def format_trim_preview(plan: TrimPlan) -> str:
    """Return the preview of a trim: totals, savings by rule and by tool, the largest pieces, and remarks.

    No line is much longer than 80 columns.
    """
    savings = plan.savings
    lines = format_totals(plan)
    if savings.savings_by_rule:
        lines += ["", *_format_savings_table("by rule", savings.savings_by_rule, RULE_DESCRIPTIONS)]
        lines += ["", *_format_savings_table("by tool", savings.savings_by_tool, {})]
        lines += ["", "largest"]
        for piece in savings.largest_pieces[:MAX_LISTED_PIECES]:
            piece_name = format_cell(f"{piece.tool or piece.rule} {piece.target}")
            lines.append(f"  {piece.tokens:>8,}  {piece_name}  {piece.original_reference}")
    return "\n".join([*lines, *(f"\n{sentence}" for sentence in list_remarks(plan))])


def format_card(plan: TrimPlan) -> str:
    """Return the short preview of a trim for a card: the totals, the largest piece and the remarks."""
    largest = []
    for piece in plan.savings.largest_pieces[:1]:
        largest.append(
            "largest: "
            f"{collapse_line(plain_line(f'{piece.tool or piece.rule} {piece.target}'), MAX_NAME_COLUMNS)}, "
            f"{piece.tokens:,} tokens"
        )
    return "\n".join([*format_totals(plan), *largest, *list_remarks(plan)])


def format_totals(plan: TrimPlan) -> list[str]:
    """Return two lines: the context before and after the trim, and the savings.

    The context before the trim may be larger than what the client currently reports.
    """
    before, after, savings = plan.context_before, plan.context_after, plan.savings
    estimate_word = "about " if before.is_estimate else ""
    sent_text = (
        f"a resume sends {estimate_word}{before.tokens:,} tokens ({before.size_in_percent_text})"
    )
    percent_text = "" if after.percent is None else f" ({after.percent} %)"
    records = format_count(len({choice.piece.line_number for choice in plan.choices}), "record")
    return [
        f"{sent_text}, after the trim about {after.tokens:,}{percent_text}",
        f"saves about {savings.tokens:,} tokens, {savings.saved_character_count:,} characters in {records}",
    ]


def list_remarks(plan: TrimPlan) -> list[str]:
    """Return remarks for the user about a trim.

    There is one remark for each unknown tool. There may also be remarks that the trim saves too
    little, that the child would still be compacted, and that the target is not reached.
    """
    sentences = []
    for name in plan.decision.unknown_tools:
        sentences.append(f"No tool named {name} was used in this conversation.")
    if not plan.is_worthwhile:
        sentences.append(
            f"Trimming would not pay off: it would save less than {plan.options.min_savings:,} tokens."
        )
    elif plan.context_after.compacts_at_once:
        sentences.append(
            "The child would still be compacted at once: trim more (--target-tokens, "
            "--keep-recent 0), or hand off."
        )
    target = plan.options.target_tokens
    if target and plan.context_after.tokens > target:
        sentences.append(
            f"The target of {target:,} tokens cannot be reached: with these options, nothing else can be trimmed."
        )
    return sentences


def _format_savings_table(
    name: str, rows: Sequence[SavingsRow], descriptions: Mapping[str, str]
) -> list[str]:
    """Return the lines of a preview's table. Rows that save no tokens are omitted.

    ``name`` is the heading. ``descriptions`` maps the names of rows to explanations.
    """
    rows = [row for row in rows if row.tokens_before > row.tokens_after]
    table_lines = []
    for row in rows[:MAX_TABLE_ROWS]:
        saved = row.tokens_before - row.tokens_after
        line = f"  {saved:>8,}  {plain_line(row.name)[:40]} ({row.piece_count:,})"
        if row.name in descriptions:
            line += f": {descriptions[row.name]}"
        table_lines.append(line)
    if len(rows) > MAX_TABLE_ROWS:
        table_lines.append(f"  and {len(rows) - MAX_TABLE_ROWS} more")
    return [name, *table_lines]


def format_cell(text: str) -> str:
    """Return text from a session, shortened to fit into a cell of a table in a preview."""
    return collapse_line(plain_line(text), MAX_CARD_COLUMNS)
