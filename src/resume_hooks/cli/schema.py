"""The documented forms of ``--json``: one model a verb, exported to docs/schema/.

A verb whose answer does not fit its model is a bug, found before a program reads it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel


class Strict(BaseModel):
    """No field beyond the documented ones."""

    model_config = ConfigDict(extra="forbid")


class LineageRow(Strict):
    """A session of a lineage."""

    session_id: str
    session_file: str
    title: str
    derivation_type: Literal["original", "trimmed", "continued", "unknown"]
    kind: str = Field(description="original, handoff, rollover, trim, fork, clear...")
    exported_file: str | None
    parent_session_id: str | None
    status: Literal["present", "kept", "missing"]
    created: str
    ended: str
    size: int = Field(description="bytes")


class Lineage(Strict):
    """Ancestors, oldest first, the session itself last."""

    rows: list[LineageRow]


class Derived(Strict):
    """What came from a session, parents before children."""

    session_id: str
    rows: list[LineageRow]


class Resolved(Strict):
    """The session that a locator names."""

    session_id: str
    session_file: str
    title: str
    size: int = Field(description="bytes")
    ended: str


class Context(Strict):
    """Tokens in use."""

    tokens: int
    window: int
    measured: bool = Field(description="counted by the API; else estimated from characters")
    percent: int
    compacts_at_once: bool


class Info(Strict):
    """What a session holds."""

    session_id: str
    session_file: str
    title: str
    tag: str
    cwd: str
    branch: str
    client_version: str
    created: str
    ended: str
    size: int = Field(description="bytes")
    lines: int
    bad_lines: list[int] = Field(description="0-based numbers of lines that hold no JSON object")
    torn: bool = Field(description="the last line has no ending")
    records: int
    live_records: int
    turns: int
    tool_calls: int
    unanswered_calls: int
    models: dict[str, int] = Field(description="answers by model")
    context: Context
    characters_per_token: float


class CheckRow(Strict):
    """One invariant of a written session."""

    name: str
    ok: bool


class Commands(Strict):
    """How to go on in the child."""

    in_client: str
    shell: str


class Receipt(Strict):
    """What a verb wrote, or would write where ``written`` is false."""

    session_id: str
    file: str
    title: str
    parent_session_id: str
    parent_file: str
    kind: str
    written: bool
    tokens_before: int
    tokens_after: int
    chars_saved: int
    tools_trimmed: int
    checks: list[CheckRow]
    commands: Commands


class SavingsRow(Strict):
    """What goes by one name."""

    name: str
    pieces: int
    tokens_before: int
    tokens_after: int


class SavedItem(Strict):
    """One of the largest pieces."""

    original: str = Field(description="reference: session and record")
    rule: str
    tool: str
    target: str
    tokens: int


class Savings(Strict):
    """What a trim saves, in tokens of what the client would send."""

    pays: bool
    tokens_saved: int
    measured: bool = Field(description="the size before was counted by the API; else estimated")
    window: int
    percent_before: int
    percent_after: int
    compacts_at_once: bool = Field(description="the client would compact the child on resume")
    rollover_tokens: int = Field(description="what a fresh child would hold instead")
    characters_per_token: float
    rules: list[SavingsRow]
    tools: list[SavingsRow]
    largest: list[SavedItem]


class TrimReceipt(Receipt):
    """The receipt of a trim; no id and no file where it would not pay."""

    savings: Savings
    in_place: bool = Field(default=False, description="the session's own file was, or would be, rewritten")
    backup: str | None = Field(default=None, description="the exact copy that a trim in place kept of the file")


class MissingOriginal(Strict):
    """A trimmed record that stays as it is."""

    record: int = Field(description="0-based line in the parent's file")
    why: str


class Restoration(Strict):
    """What an untrim brings back."""

    trimmed: int = Field(description="trimmed records of the parent's conversation")
    restored: int
    characters: int = Field(description="of what is sent, more than before")
    missing: list[MissingOriginal]


class UntrimReceipt(Receipt):
    """The receipt of an untrim; no id and no file where nothing was trimmed."""

    restoration: Restoration


class RecordText(Strict):
    """One record as text; of trimmed content the original."""

    reference: str = Field(description="session and record of what is printed")
    session_id: str
    session_file: str
    record: int = Field(description="0-based line")
    uuid: str
    kind: str
    role: str
    timestamp: str
    tool: str = Field(description="the tool that is called or answers; empty for none")
    truncated: bool = Field(description="the record that was asked for held a placeholder")
    characters: int = Field(description="of the whole text; --max-chars may have shortened it")
    text: str


class PassageRow(Strict):
    """One record as a model reads it: calls in a line each, what the client added only told of."""

    reference: str = Field(description="session and record; what `read` takes")
    record: int = Field(description="0-based line")
    turn: int | None = Field(description="counted by prompts in the order of the file; null in pages")
    uuid: str
    kind: str
    role: str
    speaker: str = Field(description="whose words these are, of what tool the result is")
    timestamp: str
    tool: str = Field(description="the tool that is called or answers; empty for none")
    target: str = Field(description="what the call is about: a file, a command...")
    failed: bool = Field(description="a failed result of a tool, or an error of the API")
    calls: list[str] = Field(description="references of the calls that a failed record answers, with --errors")
    characters: int = Field(description="of the record's whole text")
    text: str = Field(description="shortened where --max-chars asks for it")


class Passages(Strict):
    """Records of a transcript, in its order: those of turns, those around one, or those that tell of a failure."""

    session_id: str
    session_file: str
    title: str
    turn_count: int | None = Field(description="null where records around one were asked for")
    records: list[PassageRow]


class CommandRow(Strict):
    """A command of a shell."""

    reference: str = Field(description="of the call")
    result: str | None = Field(description="reference of the answer")
    turn: int
    timestamp: str
    command: str
    state: Literal["ok", "failed", "interrupted", "rejected", "background", "unanswered"]
    exit_code: int | None = Field(description="where the client wrote it down, which it does of failures")


class ShellCommands(Strict):
    """The commands that were run."""

    session_id: str
    session_file: str
    title: str
    turn_count: int
    commands: list[CommandRow]


class Event(PassageRow):
    """A record on a page; ``id`` is what --before takes."""

    id: str


class Page(Strict):
    """A page of a transcript."""

    events: list[Event] = Field(description="oldest to newest")
    firstId: str | None = Field(description="the oldest of the page; null if it is empty")  # noqa: N815 - the contract's
    hasMore: bool = Field(description="there is something before it")  # noqa: N815
    size: int = Field(description="bytes of the file")


class Read(RootModel[RecordText | Passages | ShellCommands | Page]):
    """A record; with --before or --after, --turns or --errors several; with --commands or --page what these name."""


class OutlineTurn(Strict):
    """A turn: a prompt and all up to the next. Number 0 is what stands before the first prompt."""

    number: int = Field(description="by prompts, in the order of the file; it stays when the session grows")
    reference: str = Field(description="of the prompt")
    time: str
    first_words: str
    tools: dict[str, int] = Field(description="calls by tool")
    failed: int = Field(description="results that are errors")
    files: list[str] = Field(description="that tools read or wrote, the written ones first")
    edited: list[str] = Field(description="those that were written")
    tokens: int = Field(description="the context after the turn as the API counted it; 0 where it did not")
    growth: int | None = Field(description="what the turn added to it; null where that is not known")
    place: Literal["live", "compacted", "branch"] = Field(
        description="live: sent on resume, or some of it; compacted: before a compaction; branch: on one that was left"
    )


class OutlineCompaction(Strict):
    """A compaction, within or after a turn."""

    turn: int
    reference: str
    time: str
    trigger: str
    tokens_before: int
    summary: str | None = Field(description="reference of the summary")


class OutlineSubagent(Strict):
    """A sub-agent that the session started."""

    locator: str = Field(description="what outline and read take")
    name: str
    kind: str
    task: str
    turn: int | None = Field(description="the turn that started it; null where nothing tells")
    records: int
    size: int = Field(description="bytes")


class SessionOutline(Strict):
    """The turns of a session, or of a sub-agent."""

    session_id: str
    session_file: str
    title: str
    created: str
    ended: str
    size: int = Field(description="bytes")
    lines: int
    bad_lines: list[int] = Field(description="0-based numbers of lines that hold no JSON object")
    turn_count: int = Field(description="of the whole session; number 0 aside")
    turns: list[OutlineTurn]
    compactions: list[OutlineCompaction]
    subagents: list[OutlineSubagent]


class Finding(Strict):
    """One finding of doctor."""

    name: str
    level: Literal["ok", "note", "problem"]
    detail: str
    remedy: str


class Doctor(Strict):
    """The findings of doctor, in the order checked."""

    findings: list[Finding]


class FsckFinding(Strict):
    """One defect."""

    record: int | None = Field(description="0-based line number")
    uuid: str
    message: str


class FsckKind(Strict):
    """The defects of one kind."""

    code: str
    severity: Literal["error", "warning", "note"]
    consequence: str = Field(description="what the clients and the API do with it")
    repairable: bool
    count: int
    findings: list[FsckFinding] = Field(description="the first 200")


class FsckSession(Strict):
    """What is broken in a session, the worst first."""

    session_id: str
    session_file: str
    clean: bool = Field(description="no errors and no warnings")
    errors: int
    warnings: int
    notes: int
    kinds: list[FsckKind]


class Fsck(Strict):
    """The sessions looked at; ``repair`` is the child that was, or would be, written."""

    sessions: list[FsckSession]
    unlistable: list[str] = Field(description="project folders that can't be listed: nothing in them was looked at")
    repair: Receipt | None
    lost: list[str] = Field(description="what the repaired child could not keep")


class SettingRow(Strict):
    """A setting in force."""

    key: str
    value: int | str | list[str]
    source: Literal["default", "file", "environment", "plugin"]
    about: str


class Config(Strict):
    """The settings in force and the file that keeps them."""

    file: str
    settings: list[SettingRow]


class Installation(Strict):
    """What install or uninstall did."""

    plugin: str
    commands: list[str]
    ran: bool = Field(description="false: claude is not on PATH, the commands are for the user to run")
    stays: list[str] = Field(description="folders of ours that are still there")


class SearchCommands(Strict):
    """What to run to go on from a hit."""

    read: str
    resume: str
    handoff: str


class SearchHit(Strict):
    """A turn that answers a search, by its best record."""

    reference: str = Field(description="<session id>[/agent-<id>]:<0-based line>; read takes it")
    session_id: str
    session_file: str
    file: str = Field(description="the transcript that holds the record: the session's, or a sub-agent's")
    folder: str
    title: str
    turn: int = Field(description="by prompts in the file's order, from 1; 0 before the first")
    role: str
    tool: str
    time: str
    snippet: str
    words: list[str] = Field(description="of the query, found in the turn")
    missing: list[str]
    sessions: list[str] = Field(description="all that hold the record, the one it was first said in first")
    same: int = Field(description="further turns that say the very same")
    score: float
    commands: SearchCommands


class Search(Strict):
    """The best hits, the best first."""

    query: str
    scope: str = Field(description="all, session, lineage, or the folder whose project was searched")
    how: str
    total: int = Field(description="turns that fit; hits are the best of them")
    hits: list[SearchHit]
    helpers_left_out: int


class Index(Strict):
    """The state of the index."""

    file: str
    state: Literal["ready", "missing", "damaged", "newer"]
    size: int
    transcripts: int
    transcripts_size: int
    sessions: int
    records: int
    copies: int
    behind: int = Field(description="files to be read or dropped")
    bytes_read: int = Field(description="by this command")


DATA: dict[str, type[BaseModel]] = {
    "lineage": Lineage,
    "find-original": LineageRow,
    "find-derived": Derived,
    "resolve": Resolved,
    "info": Info,
    "rollover": Receipt,
    "handoff": Receipt,
    "trim": TrimReceipt,
    "untrim": UntrimReceipt,
    "outline": SessionOutline,
    "read": Read,
    "fsck": Fsck,
    "search": Search,
    "index": Index,
    "doctor": Doctor,
    "config": Config,
    "install": Installation,
    "uninstall": Installation,
}


def checked(verb: str, data: dict[str, Any]) -> dict[str, Any]:
    """``data`` as its verb's model has it."""
    found: dict[str, Any] = DATA[verb].model_validate(data).model_dump(mode="json")
    return found
