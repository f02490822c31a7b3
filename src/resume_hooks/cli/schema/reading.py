"""The schemas of the verbs that read a session: outline, read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel

from resume_hooks.cli.schema.base import (
    ByteCount,
    CommonFields,
    FieldsLike,
    LineNumbers,
    StrictModel,
)
from resume_hooks.reading.outline import OutlineAgent, OutlineTurn
from resume_hooks.reading.passages import Passage

Tool = Annotated[str, Field(description="the tool of the call or result; empty for none")]

passage = CommonFields[Passage]()


class RecordText(StrictModel):
    """One record as text, with the original of trimmed content."""

    reference: str = Field(description="the printed session and record")
    session_id: str
    session_file: str
    record: int = Field(description="0-based line")
    uuid: str
    kind: str
    role: str
    timestamp: str
    tool: Tool
    truncated: bool = Field(description="the requested record has a placeholder")
    characters: int = Field(description="the length of the whole text")
    text: str = Field(description="a page of the text; it usually ends before an unindented line")
    next_skip: int | None = Field(
        description="where the next page begins, for --skip; null on the last page"
    )


class PassageRow(StrictModel):
    """One record for a model: each call in a line, the client's additions only named."""

    reference: str = Field(description="session and record, for `read`")
    record: int | None = passage(
        lambda one: one.entry.number if one.entry.number >= 0 else None,
        "0-based line; null in pages, where lines are not counted",
    )
    turn: int | None = passage(
        lambda one: one.turn if one.turn >= 0 else None,
        "counted by prompts in the order of the file; null in pages",
    )
    uuid: str
    kind: str = passage(lambda one: one.rendering.kind)
    role: str = passage(lambda one: one.rendering.role)
    speaker: str = Field(description="the speaker, or the result's tool")
    timestamp: str
    tool: Tool = passage(lambda one: one.rendering.tool)
    target: str = passage(
        lambda one: one.rendering.target, "the object of the call: a file, a command..."
    )
    failed: bool = Field(description="a failed result of a tool, or an error of the API")
    calls: list[str] = Field(
        description="references of the calls that a failed record answers, with --errors"
    )
    characters: int = Field(description="the length of the record's whole text")
    text: str = Field(description="shortened to --max-chars")


class Passages(StrictModel):
    """Records of a transcript in file order: those of turns, those around one, or the failures."""

    session_id: str
    session_file: str
    title: str
    turn_count: int | None = Field(description="null for the records around one")
    records: list[PassageRow]


class CommandRow(StrictModel):
    """A shell command."""

    reference: str = Field(description="reference of the call")
    result: str | None = Field(description="reference of the answer")
    turn: int
    timestamp: str
    command: str
    state: Literal["ok", "failed", "interrupted", "rejected", "background", "unanswered"]
    exit_code: int | None = Field(
        description="null if the client did not record it; it does for failures"
    )


class ShellCommands(StrictModel):
    """The commands of a session."""

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

    events: list[PageEvent] = Field(description="oldest to newest")
    firstId: str | None = Field(description="the oldest of the page; null if it is empty")  # noqa: N815 - the contract's
    hasMore: bool = Field(description="earlier records exist")  # noqa: N815
    size: int = Field(description="bytes of the file when it was read")


class ReadSchema(RootModel[RecordText | Passages | ShellCommands | EventPage]):
    """A record; several with --before, --after, --turns or --errors.

    With --commands or --page, commands or a page.
    """


class OutlineCompaction(StrictModel):
    """A compaction, in or after a turn."""

    turn: int
    reference: str
    time: str
    trigger: str
    tokens_before: int
    summary: str | None = Field(description="reference of the summary")
    abandoned: bool = Field(description="it is on an abandoned branch, which is not sent")


class OutlineSchema(StrictModel):
    """The turns of a session, or of a sub-agent."""

    session_id: str
    session_file: str
    title: str
    created: str
    ended: str
    size: ByteCount
    lines: int
    bad_lines: LineNumbers
    turn_count: int = Field(description="turns of the whole session, without turn 0")
    turns: list[
        Annotated[
            OutlineTurn,
            FieldsLike(
                line=None,
                number="counted by prompts in file order; stable while the session grows",
                reference=(str, "reference of the prompt"),
                tools="calls by tool",
                failed="results that are errors",
                files="files that tools read or wrote, written ones first",
                edited="the written files",
                tokens="the API's count of the context after the turn; 0 without one",
                growth="the tokens that the turn added; null if unknown",
                place=(
                    Literal["live", "compacted", "branch"],
                    (
                        "live: sent on resume, or some of it; compacted: before a "
                        "compaction; branch: on an abandoned one"
                    ),
                ),
            ),
        ]
    ]
    compactions: list[OutlineCompaction]
    subagents: list[
        Annotated[
            OutlineAgent,
            FieldsLike(
                locator=(str, "the locator for outline and read"),
                turn="the turn that started it; null if unknown",
                size="bytes",
            ),
        ]
    ]
