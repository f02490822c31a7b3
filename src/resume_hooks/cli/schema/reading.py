"""The forms of the verbs that read a session: outline, read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel

from resume_hooks.cli.schema.base import Bytes, CommonFields, FieldsLike, LineNumbers, StrictModel
from resume_hooks.reading.outline import OutlineAgent, OutlineTurn
from resume_hooks.reading.passages import Passage

Tool = Annotated[str, Field(description="the tool that is called or answers; empty for none")]

passage = CommonFields[Passage]()


class RecordText(StrictModel):
    """One record as text, with the original of trimmed content."""

    reference: str = Field(description="session and record of what is printed")
    session_id: str
    session_file: str
    record: int = Field(description="0-based line")
    uuid: str
    kind: str
    role: str
    timestamp: str
    tool: Tool
    truncated: bool = Field(description="the record that was asked for held a placeholder")
    characters: int = Field(description="of the whole text")
    text: str = Field(description="a page of it; as a rule a page ends before a line at the margin")
    next_skip: int | None = Field(
        description="where the next page begins, for --skip; null on the last page"
    )


class PassageRow(StrictModel):
    """One record for a model: each call in a line, the client's additions only named."""

    reference: str = Field(description="session and record; what `read` takes")
    record: int | None = passage(
        lambda one: one.entry.number if one.entry.number >= 0 else None,
        "0-based line; null in pages, where lines are not counted",
    )
    turn: int | None = passage(
        lambda one: one.turn if one.turn >= 0 else None,
        "counted by prompts in the order of the file; null in pages",
    )
    uuid: str
    kind: str = passage(lambda one: one.shown.kind)
    role: str = passage(lambda one: one.shown.role)
    speaker: str = Field(description="whose words these are, of what tool the result is")
    timestamp: str
    tool: Tool = passage(lambda one: one.shown.tool)
    target: str = passage(
        lambda one: one.shown.target, "what the call is about: a file, a command..."
    )
    failed: bool = Field(description="a failed result of a tool, or an error of the API")
    calls: list[str] = Field(
        description="references of the calls that a failed record answers, with --errors"
    )
    characters: int = Field(description="of the record's whole text")
    text: str = Field(description="shortened where --max-chars asks for it")


class Passages(StrictModel):
    """Records of a transcript in file order: those of turns, those around one, or the failures."""

    session_id: str
    session_file: str
    title: str
    turn_count: int | None = Field(description="null where records around one were asked for")
    records: list[PassageRow]


class CommandRow(StrictModel):
    """A shell command."""

    reference: str = Field(description="of the call")
    result: str | None = Field(description="reference of the answer")
    turn: int
    timestamp: str
    command: str
    state: Literal["ok", "failed", "interrupted", "rejected", "background", "unanswered"]
    exit_code: int | None = Field(
        description="where the client wrote it down, which it does of failures"
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
            "what --before takes: <session>:<uuid>@<byte>, or <session>:@<byte> for a record "
            "without a uuid"
        )
    )


class EventPage(StrictModel):
    """A page of a transcript."""

    events: list[PageEvent] = Field(description="oldest to newest")
    firstId: str | None = Field(description="the oldest of the page; null if it is empty")  # noqa: N815 - the contract's
    hasMore: bool = Field(description="there is something before it")  # noqa: N815
    size: int = Field(description="bytes of the file as it was read")


class ReadForm(RootModel[RecordText | Passages | ShellCommands | EventPage]):
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
    abandoned: bool = Field(description="it lies on an abandoned branch, which is not sent")


class OutlineForm(StrictModel):
    """The turns of a session, or of a sub-agent."""

    session_id: str
    session_file: str
    title: str
    created: str
    ended: str
    size: Bytes
    lines: int
    bad_lines: LineNumbers
    turn_count: int = Field(description="of the whole session; number 0 aside")
    turns: list[
        Annotated[
            OutlineTurn,
            FieldsLike(
                line=None,
                number="by prompts, in the order of the file; it stays when the session grows",
                reference=(str, "of the prompt"),
                tools="calls by tool",
                failed="results that are errors",
                files="that tools read or wrote, the written ones first",
                edited="those that were written",
                tokens="the context after the turn as the API counted it; 0 where it did not",
                growth="what the turn added to it; null where that is not known",
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
                locator=(str, "what outline and read take"),
                turn="the turn that started it; null where nothing tells",
                size="bytes",
            ),
        ]
    ]
