"""The texts of a record by role: prompts, replies, tool inputs, outputs.

``read_transcript`` decides how much each role counts.

Texts that the client adds to every session (listings, its own logs) are omitted. So are
placeholders and lineage blocks, whose originals are indexed elsewhere. Our own output is also
omitted, because a search would otherwise find earlier searches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.sessions.child_titles import root_title_of
from resume_hooks.sessions.lineage_block import CLOSING_MARKER, OPENING_MARKER
from resume_hooks.transcripts import metadata_records, records, script_calls
from resume_hooks.transcripts.attachments import (
    QUEUED,
    REPLACEABLE_KINDS,
    attachment_kind,
    hook_texts_of_record,
    iterate_sent_texts,
)
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, get_string

OWN_ENGINE_TOOL = "resume-hooks"  # the tool name for a call to our own engine
# the maximum length of a path in characters; no system opens a longer path
MAX_PATH_CHARACTERS = 4_096
SEARCHER_AGENTS = frozenset({"resume-hooks:session-searcher", "session-searcher"})
"""Agents that only search: their tasks and answers repeat the texts that they found."""

_OWN_CALL = re.compile(
    r"""\s*(?:cd \S+ && )?"""
    r"""(?:"[^"]*/hooks/engine"|'[^']*/hooks/engine'|\S*/hooks/engine|(?:\S*python\S* -m )?resume[-_]hooks)"""
    r"""\s+(?:search|outline|read|lineage|sessions|info|find-\w+)\b[^;&|<>`$\n]*\Z"""
)
"""A command that calls our engine and does nothing else."""

_OWN_TEXT = re.compile(
    r'resume-hooks (?:search|outline|read|sessions)[:·]|\s*\{\s*"schema":\s*1,\s*"verb":'
)
# the explanation of placeholders in a trimmed child, after its lineage
_LEGEND = r"(?:\nText such as \[[^\n]*)?"
_DIGEST = rf"^{re.escape(metadata_records.DIGEST_BEGINNING)}[^\n]*(?:\n[^\n]+)*"
"""A child's quotes of its parent, which are indexed in the parent."""

_BLOCK_CONTENT = (
    rf"(?:[^\[]++|\[(?!{re.escape(OPENING_MARKER[1:])}|{re.escape(CLOSING_MARKER[1:])}))*+"
)
"""The content of a block, without a marker inside, so that a text full of opening markers is scanned only once."""

_BLOCK = re.compile(
    f"{re.escape(OPENING_MARKER)}{_BLOCK_CONTENT}{re.escape(CLOSING_MARKER)}{_LEGEND}|{_DIGEST}",
    re.MULTILINE,
)
_OWN_CARD_STARTS = ("<local-command-stdout>resume-hooks", "resume-hooks: ")
"""Prefixes of a system record that contains one of our cards or remarks."""
_BLOCKED_TEXT = "operation blocked by hook"


class RecordTexts(NamedTuple):
    """The texts of a record by column, its role, the called or answered ``tool``, and the ``files`` that it used."""

    role: str
    tool: str = ""
    prompt: str = ""
    reply: str = ""
    input: str = ""
    result: str = ""
    files: tuple[str, ...] = ()

    @property
    def has_no_texts(self) -> bool:
        """Whether the record has nothing to index."""
        return not (self.prompt or self.reply or self.input or self.result or self.files)


class TextExtractor:
    """The texts of one file's records, in order.

    ``open_calls`` maps the ids of unanswered calls to their tools.

    A record from the index contains none of our output, so ``omits_own_output`` is false for it.
    """

    def __init__(
        self,
        open_calls: dict[str, str] | None = None,
        *,
        subagent: bool = False,
        omits_own_output: bool = True,
    ) -> None:
        self.open_calls = dict(open_calls or {})
        self._subagent = subagent
        self._omits_own_output = omits_own_output
        self._seen_titles: set[str] = set()
        self._is_imported = False
        """Whether the file is an imported session. Its answers name no model."""

    def extract_texts(self, record: Record) -> RecordTexts | None:
        """Return the texts of a record, or None if it has none."""
        self._is_imported = self._is_imported or metadata_records.IMPORT_FIELD in record
        kind = records.get_kind(record)
        if kind in metadata_records.SILENT_KINDS:
            return None
        texts: RecordTexts | None
        if kind == records.ASSISTANT:
            # The opening of our fresh session and the client's replacement of a missing answer were
            # not written by a model.
            is_synthetic = (
                get_string(records.get_message(record), "model") == records.SYNTHETIC_MODEL
            )
            is_reported = record.get("isApiErrorMessage") is True or script_calls.is_made_by_script(
                record
            )
            is_ours = (
                is_synthetic and self._omits_own_output and not (is_reported or self._is_imported)
            )
            texts = None if is_ours else self._extract_assistant_texts(record)
        elif kind in {
            records.USER,
            records.RESULT,
            records.CALL,
        }:  # the last two types come from plain exports
            if script_calls.is_copy_of_error(record):
                texts = None
            else:
                texts = self._extract_user_texts(script_calls.add_result_text(record))
        elif kind in metadata_records.TITLE_FIELDS:
            texts = self._extract_title(get_string(record, metadata_records.TITLE_FIELDS[kind]))
        else:
            texts = _extract_other_texts(record, kind)
        if texts is None or texts.has_no_texts:
            return None
        return texts

    def _extract_assistant_texts(self, record: Record) -> RecordTexts:
        reply: list[str] = []
        inputs: list[str] = []
        files: list[str] = []
        tools: list[str] = []
        for block in records.list_blocks(record):
            kind = get_string(block, "type")
            if kind == records.TEXT:
                reply.append(get_string(block, "text"))
            elif kind == records.THINKING:
                inputs.append(get_string(block, "thinking"))
            elif kind in {records.CALL, records.SERVER_CALL}:
                tools.append(self._add_call(block, inputs, files))
        if tools:
            role = "call"
        elif any(reply):
            role = "reply"
        else:
            role = "thinking"
        return RecordTexts(
            role,
            ", ".join(dict.fromkeys(tools)),
            "",
            _join_own_texts(reply),
            _join_own_texts(inputs),
            "",
            tuple(files),
        )

    def _add_call(self, block: Record, inputs: list[str], files: list[str]) -> str:
        name, values = get_string(block, "name"), records.get_mapping(block, "input")
        if name == "Bash":
            own_call = _OWN_CALL.match(get_string(values, "command"))
        else:
            own_call = None
        is_searcher = (
            name in {"Agent", "Task"} and get_string(values, "subagent_type") in SEARCHER_AGENTS
        )
        is_own = self._omits_own_output and (is_searcher or own_call is not None)
        self.open_calls[get_string(block, "id")] = OWN_ENGINE_TOOL if is_own else name
        if not is_own:
            inputs += records.strings_in_value(values)
            files += (
                path
                for key in records.FILE_KEYS
                if (path := get_string(values, key)) and len(path) <= MAX_PATH_CHARACTERS
            )
        return name

    def _extract_user_texts(self, record: Record) -> RecordTexts:
        tool = get_string(records.get_message(record), "tool_name") or get_string(
            record, "tool_name"
        )
        spoken_texts: list[str] = []
        results: list[str] = []
        for block in records.list_blocks(record):
            if block.get("type") == records.TEXT:
                spoken_texts.append(get_string(block, "text"))
            elif block.get("type") == records.RESULT:
                called_tool = self.open_calls.pop(get_string(block, "tool_use_id"), "")
                tool = tool or called_tool
                if called_tool != OWN_ENGINE_TOOL:
                    # Only a shell prints our engine's output. In another tool's answer such text is
                    # someone else's.
                    results += _answer_texts(
                        block,
                        omits_own_output=self._omits_own_output and called_tool in ("", "Bash"),
                    )
        if tool or results or records.get_kind(record) == records.RESULT:
            plain_contents = [get_string(record, "content")] if not results else []
            return RecordTexts(
                "result",
                "" if tool == OWN_ENGINE_TOOL else tool,
                "",
                "",
                "",
                _join_own_texts([*spoken_texts, *results, *plain_contents]),
            )
        return self._extract_spoken_texts(record, _join_own_texts(spoken_texts))

    def _extract_spoken_texts(self, record: Record, text: str) -> RecordTexts:
        """Return the text of a user record that is not a tool's answer: a prompt, a task, a summary or an insertion."""
        if record.get("isCompactSummary"):
            return RecordTexts("summary", input=text)
        if self._subagent and not record.get("isMeta"):
            return RecordTexts("task", input=text)
        if records.is_prompt(record):
            return RecordTexts(
                "prompt",
                prompt=records.prompt_text(record) if text.startswith("<command-") else text,
            )
        return RecordTexts("note", result=text)

    def _extract_title(self, title: str) -> RecordTexts | None:
        """Return a session's title, but only once, because clients repeat it."""
        if title in self._seen_titles or root_title_of(title) != title:
            return None  # the title of a derived session only repeats that of its root
        self._seen_titles.add(title)
        return RecordTexts("title", prompt=title)


def _extract_other_texts(record: Record, kind: str) -> RecordTexts | None:
    if kind == records.ATTACHMENT:
        sent_kind = attachment_kind(record)
        if sent_kind not in REPLACEABLE_KINDS and sent_kind != QUEUED:
            return None
        texts = [text for _, text in iterate_sent_texts(record)]
        if any(metadata_records.LATER_PART_BEGINNING in text for text in texts):
            # the quotes are indexed in another part, with the text around them
            texts = hook_texts_of_record(record)
        text = _join_own_texts(texts)
        if sent_kind == QUEUED:
            return RecordTexts("prompt", prompt=text)
        return RecordTexts("note", result=text)
    if kind == records.PROGRESS:
        # Old clients store the records of a sub-agent in the parent's file.
        blocks = records.list_blocks(
            records.get_mapping(records.get_mapping(record, "data"), "message")
        )
        return RecordTexts(
            "note",
            result=_join_own_texts(
                [t for block in blocks for t in (get_string(block, "text"), *_answer_texts(block))]
            ),
        )
    content = get_string(record, "content")
    if _BLOCKED_TEXT in content[:200] or content.startswith(_OWN_CARD_STARTS):
        # omit the text, because it never reached the model, and searches would find our own cards
        return None
    return RecordTexts("note", result=_join_own_texts([content]))


def _answer_texts(block: Record, *, omits_own_output: bool = True) -> Iterator[str]:
    """Yield the texts of a tool's answer, without our own output."""
    for part in records.result_blocks(block):
        text = get_string(part, "text")
        if text and not (omits_own_output and _OWN_TEXT.match(text)):
            yield text


def _join_own_texts(texts: list[str]) -> str:
    """Return the texts without our placeholders and blocks."""
    own_texts = (text for text in texts if text and not is_placeholder(text))
    return "\n".join(
        _BLOCK.sub(" ", text) if OPENING_MARKER in text else text for text in own_texts
    )
