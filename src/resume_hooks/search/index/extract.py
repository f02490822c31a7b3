"""What a record says, by role: prompts, replies, inputs of tools, outputs.

What each counts is in ``read_transcript``.

Not taken in: what the client adds to every session alike (listings, its own logs), placeholders and
lineage blocks, which stand for what is indexed elsewhere, and our own output, which would find
itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.sessions.child_titles import root_of
from resume_hooks.sessions.lineage_block import CLOSING, OPENING
from resume_hooks.transcripts import bookkeeping, records, script_calls
from resume_hooks.transcripts.attachments import BULK, QUEUED, hook_texts, kind_of, sent_texts
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, string

ENGINE = "resume-hooks"  # stands for the tool of a call that asked our own engine
MOST_PATH = 4_096  # characters of a path; no system opens a longer one
HELPERS = frozenset({"resume-hooks:session-searcher", "session-searcher"})
"""Agents that only search: what they are asked and say repeats what they found."""

_OWN_CALL = re.compile(
    r"""\s*(?:cd \S+ && )?"""
    r"""(?:"[^"]*/hooks/engine"|'[^']*/hooks/engine'|\S*/hooks/engine|(?:\S*python\S* -m )?resume[-_]hooks)"""
    r"""\s+(?:search|outline|read|lineage|sessions|info|find-\w+)\b[^;&|<>`$\n]*\Z"""
)
"""A command that asks our engine and does nothing else."""

_OWN_TEXT = re.compile(
    r'resume-hooks (?:search|outline|read|sessions)[:·]|\s*\{\s*"schema":\s*1,\s*"verb":'
)
_LEGEND = r"(?:\nText such as \[[^\n]*)?"  # what explains the placeholders of a trimmed child, right after its lineage
_DIGEST = rf"^{re.escape(bookkeeping.DIGEST_HEAD)}[^\n]*(?:\n[^\n]+)*"
"""What the opening of a child of ours quotes: it is indexed where it was said."""

_INSIDE = rf"(?:[^\[]++|\[(?!{re.escape(OPENING[1:])}|{re.escape(CLOSING[1:])}))*+"
"""What a block holds: no marker, so that a text full of openings is gone through once."""

_BLOCK = re.compile(
    f"{re.escape(OPENING)}{_INSIDE}{re.escape(CLOSING)}{_LEGEND}|{_DIGEST}", re.MULTILINE
)
_SHOWN = ("<local-command-stdout>resume-hooks", "resume-hooks: ")
"""What a system record begins with that holds a card or a remark of ours."""
_BLOCKED = "operation blocked by hook"


class RecordTexts(NamedTuple):
    """The texts of a record by column, who said them, the ``tool`` called or answered, the ``files`` it worked on."""

    role: str
    tool: str = ""
    prompt: str = ""
    reply: str = ""
    input: str = ""
    result: str = ""
    files: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing of it can be found."""
        return not (self.prompt or self.reply or self.input or self.result or self.files)


class TextExtractor:
    """Takes in the records of one file in order.

    ``calls`` are tools by the ids of calls that have no answer yet.

    Of a record that is known to be in the index nothing is our own output: then ``sifting`` is off.
    """

    def __init__(
        self, calls: dict[str, str] | None = None, *, subagent: bool = False, sifting: bool = True
    ) -> None:
        self.calls = dict(calls or {})
        self._subagent = subagent
        self._sifting = sifting
        self._titles: set[str] = set()
        self._is_imported = False
        """Whether the file is an imported session, whose answers name no model."""

    def texts_of(self, record: Record) -> RecordTexts | None:
        """What a record says; None for nothing."""
        self._is_imported = self._is_imported or bookkeeping.IMPORTED in record
        kind = records.kind(record)
        if kind in bookkeeping.SILENT:
            return None
        texts: RecordTexts | None
        if kind == records.ASSISTANT:
            # No model said the card of a fresh session of ours, or what the client puts where an
            # answer must be.
            written = string(records.message(record), "model") == records.SYNTHETIC_MODEL
            told = record.get("isApiErrorMessage") is True or script_calls.is_made_by_script(record)
            is_ours = written and self._sifting and not (told or self._is_imported)
            texts = None if is_ours else self._assistant(record)
        elif kind in {
            records.USER,
            records.RESULT,
            records.CALL,
        }:  # the latter two of plain exports
            if script_calls.is_copy_of_error(record):
                texts = None
            else:
                texts = self._user(script_calls.with_result(record))
        elif kind in bookkeeping.TITLES:
            texts = self._title(string(record, bookkeeping.TITLES[kind]))
        else:
            texts = _other(record, kind)
        if texts is None or texts.empty:
            return None
        return texts

    def _assistant(self, record: Record) -> RecordTexts:
        reply: list[str] = []
        given: list[str] = []
        files: list[str] = []
        tools: list[str] = []
        for block in records.blocks(record):
            kind = string(block, "type")
            if kind == records.TEXT:
                reply.append(string(block, "text"))
            elif kind == records.THINKING:
                given.append(string(block, "thinking"))
            elif kind in {records.CALL, records.SERVER_CALL}:
                tools.append(self._call(block, given, files))
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
            _own_words(reply),
            _own_words(given),
            "",
            tuple(files),
        )

    def _call(self, block: Record, given: list[str], files: list[str]) -> str:
        name, values = string(block, "name"), records.mapping(block, "input")
        if name == "Bash":
            asks = _OWN_CALL.match(string(values, "command"))
        else:
            asks = None
        helps = name in {"Agent", "Task"} and string(values, "subagent_type") in HELPERS
        own = self._sifting and (helps or asks is not None)
        self.calls[string(block, "id")] = ENGINE if own else name
        if not own:
            given += records.strings(values)
            files += (
                path
                for key in records.FILE_KEYS
                if (path := string(values, key)) and len(path) <= MOST_PATH
            )
        return name

    def _user(self, record: Record) -> RecordTexts:
        tool = string(records.message(record), "tool_name") or string(record, "tool_name")
        spoken: list[str] = []
        results: list[str] = []
        for block in records.blocks(record):
            if block.get("type") == records.TEXT:
                spoken.append(string(block, "text"))
            elif block.get("type") == records.RESULT:
                called = self.calls.pop(string(block, "tool_use_id"), "")
                tool = tool or called
                if called != ENGINE:
                    # Only a shell prints what our engine does; of other tools it is somebody's own
                    # text.
                    results += _answer_texts(
                        block, sifting=self._sifting and called in ("", "Bash")
                    )
        if tool or results or records.kind(record) == records.RESULT:
            plain = [string(record, "content")] if not results else []
            return RecordTexts(
                "result",
                "" if tool == ENGINE else tool,
                "",
                "",
                "",
                _own_words([*spoken, *results, *plain]),
            )
        return self._spoken(record, _own_words(spoken))

    def _spoken(self, record: Record, text: str) -> RecordTexts:
        """User text that answers no tool: a prompt, a sub-agent's task, a summary, what the client inserted."""
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

    def _title(self, title: str) -> RecordTexts | None:
        """A name of the session, once: clients write it again and again."""
        if title in self._titles or root_of(title) != title:
            return None  # a derived session's title says nothing that its root's does not
        self._titles.add(title)
        return RecordTexts("title", prompt=title)


def _other(record: Record, kind: str) -> RecordTexts | None:
    if kind == records.ATTACHMENT:
        named = kind_of(record)
        if named not in BULK and named != QUEUED:
            return None
        sent = [text for _, text in sent_texts(record)]
        if any(bookkeeping.FURTHER_PART in text for text in sent):
            sent = hook_texts(
                record
            )  # what is quoted in it is told by what stands around it, in another part
        text = _own_words(sent)
        if named == QUEUED:
            return RecordTexts("prompt", prompt=text)
        return RecordTexts("note", result=text)
    if kind == records.PROGRESS:
        # What a sub-agent of old clients said, whose records stand inside the parent's.
        blocks = records.blocks(records.mapping(records.mapping(record, "data"), "message"))
        return RecordTexts(
            "note",
            result=_own_words(
                [t for block in blocks for t in (string(block, "text"), *_answer_texts(block))]
            ),
        )
    content = string(record, "content")
    if _BLOCKED in content[:200] or content.startswith(_SHOWN):
        return None  # it never reached the model, and our own cards would find themselves
    return RecordTexts("note", result=_own_words([content]))


def _answer_texts(block: Record, *, sifting: bool = True) -> Iterator[str]:
    """The texts of a tool's answer, but for our own."""
    for part in records.result_blocks(block):
        text = string(part, "text")
        if text and not (sifting and _OWN_TEXT.match(text)):
            yield text


def _own_words(texts: list[str]) -> str:
    """The texts that are somebody's own words."""
    own = (text for text in texts if text and not is_placeholder(text))
    return "\n".join(_BLOCK.sub(" ", text) if OPENING in text else text for text in own)
