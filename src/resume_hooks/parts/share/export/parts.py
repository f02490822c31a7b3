"""The parts of a document in reading order; every text in them is already redacted.

All formats share these values and descriptions. Nothing is escaped yet; the module for each format
does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.clock import format_minute
from resume_hooks.reading.outline import BRANCH, COMPACTED
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.records import Record, objects, string

USER, ASSISTANT, SUMMARY = "user", "assistant", "summary"
"""The speakers; a summary is the model's text from a compaction or handoff."""

SPEAKERS = {USER: "User", ASSISTANT: "Assistant", SUMMARY: "Summary"}
PLACE_NAMES = {COMPACTED: "before a compaction", BRANCH: "on an abandoned branch"}
TASK_MARKS = {"completed": "x", "in_progress": "~"}  # the checkbox for each state of a task
MOST_NAMED_TOOLS = 6  # maximum number of tools named per turn


class TurnPart(NamedTuple):
    """The header of a turn.

    ``tokens`` is the context after it, or 0 if unknown; ``place`` is live, compacted or branch.
    """

    number: int
    time: str
    words: str
    place: str
    tokens: int
    tools: dict[str, int]
    failed: int

    @property
    def facts(self) -> list[str]:
        """The figures of a turn, as short phrases."""
        tools = []
        for name, count in list(self.tools.items())[:MOST_NAMED_TOOLS]:
            tools.append(f"{name} {count}" if count > 1 else name)
        unnamed = len(self.tools) - len(tools)
        facts = (
            format_minute(self.time),
            ", ".join([*tools, f"{unnamed} more"] if unnamed > 0 else tools),
            f"{self.failed:,} failed" if self.failed else "",
            format_count(self.tokens, "token") if self.tokens else "",
            PLACE_NAMES.get(self.place, ""),
        )
        return [fact for fact in facts if fact]


class SessionPart(NamedTuple):
    """The header of a session: its facts, and its turns for the list of turns.

    ``taken_over`` counts the records that an earlier session in the document already has.
    """

    session_id: str
    title: str
    project: str
    branch: str
    created: str
    ended: str
    kind: str
    parent: str
    tokens: int
    models: tuple[str, ...]
    versions: str
    turns: tuple[TurnPart, ...]
    taken_over: int
    damaged: int

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The known facts of a session as names and values."""
        facts = [
            ("Session", self.session_id),
            ("Project", self.project),
            ("Branch", self.branch),
            ("Time", f"{format_minute(self.created)} to {format_minute(self.ended)} UTC"),
            ("Turns", f"{len(self.turns):,}"),
            ("Context", format_count(self.tokens, "token") if self.tokens else ""),
            ("Models", ", ".join(self.models)),
            ("Client", self.versions),
            ("Came from", f"{self.kind} of {self.parent}" if self.parent else ""),
            (
                "Taken over",
                f"{format_count(self.taken_over, 'record')}, shown above"
                if self.taken_over
                else "",
            ),
            (
                "Damaged",
                f"{format_count(self.damaged, 'line')} could not be read" if self.damaged else "",
            ),
        ]
        return [(name, value) for name, value in facts if value]


class TextPart(NamedTuple):
    """A message; ``who`` is USER, ASSISTANT or SUMMARY."""

    who: str
    text: str
    time: str


class ThinkingPart(NamedTuple):
    """The model's thinking."""

    text: str


class NotePart(NamedTuple):
    """An event without a speaker: a compaction, an API error, the output of a local command."""

    what: str
    text: str


class MediaPart(NamedTuple):
    """An image or document; ``data`` is base64, or ``""`` if it was left out or is stored elsewhere."""

    kind: str
    media_type: str
    data: str
    about: str


class ResultPart(NamedTuple):
    """The result of a call."""

    parts: tuple[str | MediaPart, ...]
    failed: bool

    @property
    def text(self) -> str:
        """The result as text, with a description for each image."""
        return "\n".join(
            part if isinstance(part, str) else f"[{part.about}]" for part in self.parts
        )


class AgentPart(NamedTuple):
    """A sub-agent's conversation; ``parts`` can be iterated once."""

    name: str
    kind: str
    parts: Iterator[Part]


class CallPart(NamedTuple):
    """A tool call: ``about`` describes it in one line, ``given`` is its input."""

    tool: str
    about: str
    given: Record
    answer: ResultPart | None
    agent: AgentPart | None

    @property
    def name(self) -> str:
        """The tool's name, or a description if only the result is in the session."""
        return self.tool or "Result without its call"

    @property
    def state(self) -> str:
        """The outcome of the call if it did not succeed, else ``""``."""
        if self.answer is None:
            return "no answer"
        if self.answer.failed:
            return "failed"
        return ""

    @property
    def tasks(self) -> list[tuple[str, str]]:
        """The state and text of each task that the call records."""
        tasks = []
        for todo in objects(self.given.get("todos")):
            tasks.append((string(todo, "status"), string(todo, "content")))
        return tasks


class EndPart(NamedTuple):
    """The end of the document, with the removed secrets by kind.

    ``secrets`` is None if redaction is off.

    ``folders`` counts the replaced home folders, if they were counted.
    """

    secrets: dict[str, int] | None
    pictures: int
    cut: int
    folders: int = 0

    @property
    def sentences(self) -> list[str]:
        """Sentences about the content that was removed."""
        if self.folders:
            folder_count = f", in {format_count(self.folders, 'place')}"
        else:
            folder_count = ""
        homes = f"Home folders are shown as ~{folder_count}."
        if self.secrets is None:
            sentences = ["Nothing was removed: secrets and home folders are included."]
        elif self.secrets:
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.secrets.items()))
            sentences = [
                f"{format_count(sum(self.secrets.values()), 'secret')} taken out ({kinds}). {homes}"
            ]
        else:
            sentences = [f"No secrets were found. {homes}"]
        if self.cut:
            sentences.append(f"{format_count(self.cut, 'long text')} cut, each with a notice.")
        if self.pictures:
            sentences.append(f"{format_count(self.pictures, 'image')} not looked into for secrets.")
        return sentences


class CarriedSession(NamedTuple):
    """The session inside a page: markup ``rows`` for its end, and the counts of removed content."""

    taken: EndPart
    rows: Iterable[str]


Part = (
    SessionPart
    | TurnPart
    | TextPart
    | ThinkingPart
    | NotePart
    | MediaPart
    | CallPart
    | AgentPart
    | EndPart
)
