"""Define the parts of a document, such as messages and calls. Their texts are already redacted.

All formats use the same parts and the same phrases, for example those in ``header_phrases``. The
texts in the parts are not escaped. The module that writes a format escapes them for this format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.clock import format_minute
from resume_hooks.reading.outline import BRANCH, COMPACTED
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.records import Record, get_string, list_objects

USER, ASSISTANT, SUMMARY = "user", "assistant", "summary"
"""The speakers of messages. ``SUMMARY`` is the speaker of texts that the model wrote for a
compaction or a handoff."""

SPEAKER_NAMES = {USER: "User", ASSISTANT: "Assistant", SUMMARY: "Summary"}
TURN_STATE_DESCRIPTIONS = {COMPACTED: "before a compaction", BRANCH: "on an abandoned branch"}
# Maps the state of a to-do item to the character in its checkbox.
CHECKBOX_CHARACTERS = {"completed": "x", "in_progress": "~"}
MAX_NAMED_TOOLS = 6  # Maximum number of tools whose names are shown per turn.


class TurnHeader(NamedTuple):
    """The header of a turn.

    ``state`` is ``live`` if a resume would send the turn, ``compacted`` if the turn is before a
    compaction, and ``branch`` if it is on an abandoned branch. ``context_tokens`` is the size of
    the context after the turn, or 0 if it is unknown. ``call_counts`` maps the name of a tool to
    the number of its calls.
    """

    turn_number: int
    time: str
    first_words: str
    state: str
    context_tokens: int
    call_counts: dict[str, int]
    failed_call_count: int

    @property
    def header_phrases(self) -> list[str]:
        """Short phrases about the turn, for example its time and its tools."""
        tool_texts = []
        for name, count in list(self.call_counts.items())[:MAX_NAMED_TOOLS]:
            tool_texts.append(f"{name} {count}" if count > 1 else name)
        unnamed_count = len(self.call_counts) - len(tool_texts)
        candidate_facts = (
            format_minute(self.time),
            ", ".join([*tool_texts, f"{unnamed_count} more"] if unnamed_count > 0 else tool_texts),
            f"{self.failed_call_count:,} failed" if self.failed_call_count else "",
            format_count(self.context_tokens, "token") if self.context_tokens else "",
            TURN_STATE_DESCRIPTIONS.get(self.state, ""),
        )
        return [fact for fact in candidate_facts if fact]


class SessionPart(NamedTuple):
    """The header of a session. ``turns`` contains the entries for the list of turns.

    ``repeated_record_count`` is the number of records that are omitted because an earlier session
    of the document already contains them.
    """

    session_id: str
    title: str
    project_folder: str
    branch: str
    created_at: str
    ended_at: str
    kind: str
    parent_id: str
    context_tokens: int
    models: tuple[str, ...]
    client_version: str
    turns: tuple[TurnHeader, ...]
    repeated_record_count: int
    damaged_line_count: int

    @property
    def header_rows(self) -> list[tuple[str, str]]:
        """The known facts about the session, as pairs of a label and a value."""
        candidate_facts = [
            ("Session", self.session_id),
            ("Project", self.project_folder),
            ("Branch", self.branch),
            ("Time", f"{format_minute(self.created_at)} to {format_minute(self.ended_at)} UTC"),
            ("Turns", f"{len(self.turns):,}"),
            ("Context", format_count(self.context_tokens, "token") if self.context_tokens else ""),
            ("Models", ", ".join(self.models)),
            ("Client", self.client_version),
            ("Came from", f"{self.kind} of {self.parent_id}" if self.parent_id else ""),
            (
                "Taken over",
                f"{format_count(self.repeated_record_count, 'record')}, shown above"
                if self.repeated_record_count
                else "",
            ),
            (
                "Damaged",
                f"{format_count(self.damaged_line_count, 'line')} could not be read"
                if self.damaged_line_count
                else "",
            ),
        ]
        return [(name, value) for name, value in candidate_facts if value]


class TextPart(NamedTuple):
    """A message. ``speaker`` is ``USER``, ``ASSISTANT`` or ``SUMMARY``."""

    speaker: str
    text: str
    time: str


class ThinkingPart(NamedTuple):
    """The model's thinking."""

    text: str


class NotePart(NamedTuple):
    """An event without a speaker: a compaction, an API error, or the output of a local command."""

    title: str
    text: str


class MediaPart(NamedTuple):
    """An image or document.

    ``data`` is the content in base64. It is ``""`` if the content was omitted or if the session
    does not contain it.
    """

    kind: str
    media_type: str
    data: str
    description: str


class ResultPart(NamedTuple):
    """The result of a call."""

    parts: tuple[str | MediaPart, ...]
    is_failure: bool

    @property
    def text(self) -> str:
        """The result as text, with a description in place of each image."""
        return "\n".join(
            part if isinstance(part, str) else f"[{part.description}]" for part in self.parts
        )


class AgentPart(NamedTuple):
    """The conversation of a sub-agent. ``parts`` can only be iterated over once."""

    name: str
    kind: str
    parts: Iterator[Part]


class CallPart(NamedTuple):
    """A tool call with its result.

    ``arguments`` is the input of the call, and ``description`` is a line of text about the call.
    """

    tool: str
    description: str
    arguments: Record
    result: ResultPart | None
    agent: AgentPart | None

    @property
    def name(self) -> str:
        """The name of the tool, or a phrase that says that the session contains only the result."""
        return self.tool or "Result without its call"

    @property
    def status_text(self) -> str:
        """``failed`` or ``no answer``, or ``""`` if the call succeeded."""
        if self.result is None:
            return "no answer"
        if self.result.is_failure:
            return "failed"
        return ""

    @property
    def todo_states_and_texts(self) -> list[tuple[str, str]]:
        """The state and the text of each to-do item in the call."""
        tasks = []
        for todo in list_objects(self.arguments.get("todos")):
            tasks.append((get_string(todo, "status"), get_string(todo, "content")))
        return tasks


class EndPart(NamedTuple):
    """The end of the document, which lists what was removed.

    ``removed_secret_counts`` maps each kind of secret to the number of removed secrets. It is None if the
    document was not redacted. ``folder_count`` is the number of replaced paths of home folders, or
    0 if they were not counted.
    """

    removed_secret_counts: dict[str, int] | None
    picture_count: int
    shortened_text_count: int
    folder_count: int = 0

    @property
    def summary_sentences(self) -> list[str]:
        """The sentences at the end of the document that state what was removed."""
        if self.folder_count:
            folder_phrase = f", in {format_count(self.folder_count, 'place')}"
        else:
            folder_phrase = ""
        home_sentence = f"Home folders are shown as ~{folder_phrase}."
        if self.removed_secret_counts is None:
            sentences = ["Nothing was removed: secrets and home folders are included."]
        elif self.removed_secret_counts:
            kinds = ", ".join(
                f"{kind} {count:,}" for kind, count in sorted(self.removed_secret_counts.items())
            )
            sentences = [
                f"{format_count(sum(self.removed_secret_counts.values()), 'secret')} removed ({kinds}). {home_sentence}"
            ]
        else:
            sentences = [f"No secrets were found. {home_sentence}"]
        if self.shortened_text_count:
            sentences.append(
                f"{format_count(self.shortened_text_count, 'long text')} cut, each with a notice."
            )
        if self.picture_count:
            sentences.append(
                f"{format_count(self.picture_count, 'image')} not searched for secrets."
            )
        return sentences


class EmbeddedSession(NamedTuple):
    """The session that is embedded in a page.

    ``markup_rows`` are the lines of the session's markup. ``end_part`` says how many secrets and
    other contents were removed from the session.
    """

    end_part: EndPart
    markup_rows: Iterable[str]


Part = (
    SessionPart
    | TurnHeader
    | TextPart
    | ThinkingPart
    | NotePart
    | MediaPart
    | CallPart
    | AgentPart
    | EndPart
)
