"""The schemas of the verbs that read a session: outline and read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel

from resume_hooks.cli.schema.base import ByteCount, FieldDeclarer, LineNumbers, StrictModel
from resume_hooks.reading import outline
from resume_hooks.reading.passages import Passage, ShellCall

Tool = Annotated[str, Field(description="the tool of the call or result; empty for none")]


class RecordText(StrictModel):
    """One record as text. If the record was trimmed, the text is taken from its original."""

    reference: str = Field(description="reference of the printed record: session and 0-based line")
    session_id: str
    session_file: str
    record: int = Field(description="0-based line")
    uuid: str
    kind: str
    role: str
    timestamp: str
    tool: Tool
    truncated: bool = Field(
        description="true: the requested record has a placeholder, and its original is printed"
    )
    characters: int = Field(description="the length of the whole text")
    text: str = Field(
        description="a page of the text; the page usually ends before an unindented line"
    )
    next_skip: int | None = Field(
        description="where the next page begins, for --skip; null on the last page"
    )


passage_field = FieldDeclarer[Passage]()


class PassageRow(StrictModel):
    """One record in a short form: each call is one line, and additions by the client are only named."""

    reference: str = Field(description="reference for `read`: session and record")
    record: int | None = passage_field(
        lambda passage: passage.entry.number if passage.entry.number >= 0 else None,
        "0-based line; null in pages, where lines are not counted",
    )
    turn: int | None = passage_field(
        lambda passage: passage.turn_number if passage.turn_number >= 0 else None,
        "the number of the turn: prompts are counted in the order of the file; null in pages",
    )
    uuid: str = passage_field(lambda passage: passage.uuid)
    kind: str = passage_field(lambda passage: passage.rendering.kind)
    role: str = passage_field(lambda passage: passage.rendering.role)
    speaker: str = passage_field(
        lambda passage: passage.speaker, "the speaker, or the result's tool"
    )
    timestamp: str = passage_field(lambda passage: passage.timestamp)
    tool: Tool = passage_field(lambda passage: passage.rendering.tool_name)
    target: str = passage_field(
        lambda passage: passage.rendering.target, "what the call is about: a file, a command..."
    )
    failed: bool = passage_field(
        lambda passage: passage.is_failure,
        "true: the record is a failed tool result or an API error",
    )
    calls: list[str] = Field(
        description="with --errors: references of the calls whose results failed"
    )
    characters: int = passage_field(
        lambda passage: passage.character_count, "the length of the record's whole text"
    )
    text: str = Field(description="the record's text, shortened to --max-chars")


class Passages(StrictModel):
    """Records of a transcript in the order of the file.

    They are the records of some turns, the records around one record, or the failures.
    """

    session_id: str
    session_file: str
    title: str
    turn_count: int | None = Field(description="null with --before and --after")
    records: list[PassageRow]


command_field = FieldDeclarer[ShellCall]()


class CommandRow(StrictModel):
    """A shell command that a session ran."""

    reference: str = Field(description="reference of the call")
    result: str | None = Field(description="reference of the record with the result")
    turn: int = command_field(lambda call: call.turn_number)
    timestamp: str = command_field(lambda call: call.timestamp)
    command: str = command_field(lambda call: call.command)
    state: Literal["ok", "failed", "interrupted", "rejected", "background", "unanswered"] = (
        command_field(lambda call: call.state)
    )
    exit_code: int | None = command_field(
        lambda call: call.exit_code,
        "null if the client did not record the code; clients record it for failures",
    )


class ShellCommands(StrictModel):
    """The shell commands of a session."""

    session_id: str
    session_file: str
    title: str
    turn_count: int
    commands: list[CommandRow]


class PageEvent(PassageRow):
    """A record on a page."""

    id: str = Field(
        description=(
            "the value for --before: <session>:<uuid>@<byte>, or <session>:@<byte> for a record "
            "without a uuid"
        )
    )


class EventPage(StrictModel):
    """A page of a transcript."""

    events: list[PageEvent] = Field(description="the records on the page, oldest first")
    firstId: str | None = Field(  # noqa: N815 - the contract's
        description="the id of the page's oldest record; null if the page is empty"
    )
    hasMore: bool = Field(description="true: the transcript has earlier records")  # noqa: N815
    size: int = Field(description="the file's size in bytes when it was read")


class ReadSchema(RootModel[RecordText | Passages | ShellCommands | EventPage]):
    """One record, or several records with --before, --after, --turns or --errors.

    With --commands the answer is a list of commands, with --page a page of records.
    """


compaction_field = FieldDeclarer[outline.Compaction]()


class OutlineCompaction(StrictModel):
    """A compaction, and the turn in which it happened."""

    turn: int = compaction_field(lambda compaction: compaction.turn_number)
    reference: str
    time: str = compaction_field(lambda compaction: compaction.timestamp)
    trigger: str = compaction_field(lambda compaction: compaction.trigger)
    tokens_before: int = compaction_field(lambda compaction: compaction.token_count_before)
    summary: str | None = Field(description="reference of the summary")
    abandoned: bool = compaction_field(
        lambda compaction: compaction.is_abandoned,
        "true: the compaction is on an abandoned branch",
    )


turn_field = FieldDeclarer[outline.OutlineTurn]()


class OutlineTurn(StrictModel):
    """A turn of a session: a prompt and the records up to the next prompt.

    Turn 0 has the records before the first prompt.
    """

    number: int = turn_field(
        lambda turn: turn.number,
        "prompts are counted in the order of the file; a turn keeps its number while the session grows",
    )
    time: str = turn_field(lambda turn: turn.timestamp)
    first_words: str = turn_field(lambda turn: turn.first_words)
    tools: dict[str, int] = turn_field(
        lambda turn: turn.call_counts, "the number of calls of each tool"
    )
    failed: int = turn_field(
        lambda turn: turn.failure_count, "the number of results that are errors"
    )
    files: tuple[str, ...] = turn_field(
        lambda turn: turn.files, "files that tools read or wrote, written ones first"
    )
    edited: tuple[str, ...] = turn_field(lambda turn: turn.edited_files, "the written files")
    tokens: int = turn_field(
        lambda turn: turn.token_count,
        "tokens in the context after the turn; 0 if the API did not count them",
    )
    growth: int | None = turn_field(
        lambda turn: turn.added_token_count, "the tokens that the turn added; null if unknown"
    )
    place: Literal["live", "compacted", "branch"] = turn_field(
        lambda turn: turn.state,
        (
            "live: at least a part of the turn is sent on resume; compacted: before a compaction; "
            "branch: on an abandoned branch"
        ),
    )
    reference: str = Field(description="reference of the prompt")


agent_field = FieldDeclarer[outline.OutlineAgent]()


class OutlineAgent(StrictModel):
    """A sub-agent of the session."""

    name: str = agent_field(lambda agent: agent.name)
    kind: str = agent_field(lambda agent: agent.kind)
    task: str = agent_field(lambda agent: agent.task)
    turn: int | None = agent_field(
        lambda agent: agent.turn_number, "the turn that started the sub-agent; null if unknown"
    )
    records: int = agent_field(lambda agent: agent.record_count)
    size: int = agent_field(lambda agent: agent.byte_count, "bytes")
    locator: str = Field(description="the locator for outline and read")


outline_field = FieldDeclarer[outline.Outline]()


class OutlineSchema(StrictModel):
    """The turns of a session or of a sub-agent."""

    session_id: str
    session_file: str
    title: str = outline_field(lambda whole: whole.title)
    created: str = outline_field(lambda whole: whole.creation_time)
    ended: str = outline_field(lambda whole: whole.end_time)
    size: ByteCount = outline_field(lambda whole: whole.byte_count)
    lines: int = outline_field(lambda whole: whole.line_count)
    bad_lines: LineNumbers = outline_field(lambda whole: whole.bad_line_numbers)
    turn_count: int = outline_field(
        lambda whole: whole.turn_count, "the number of turns in the whole session, without turn 0"
    )
    turns: list[OutlineTurn]
    compactions: list[OutlineCompaction]
    subagents: list[OutlineAgent]
