"""What was read: records, turns, commands, pages, outlines."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, RootModel

from resume_hooks.cli.schema.base import Strict


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
    record: int | None = Field(description="0-based line; null in pages, where lines are not counted")
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
    """A record on a page."""

    id: str = Field(
        description="what --before takes: <session>:<uuid>@<byte>, or <session>:@<byte> for a record without a uuid"
    )


class Page(Strict):
    """A page of a transcript."""

    events: list[Event] = Field(description="oldest to newest")
    firstId: str | None = Field(description="the oldest of the page; null if it is empty")  # noqa: N815 - the contract's
    hasMore: bool = Field(description="there is something before it")  # noqa: N815
    size: int = Field(description="bytes of the file as it was read")


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
