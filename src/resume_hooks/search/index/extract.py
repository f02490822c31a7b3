"""Extract the texts of a record: its prompt, its reply, its tool inputs and its tool outputs.

``read_transcript`` decides how much each of these texts counts in a search.

Some texts are left out. Texts that the client adds to every session, such as listings and its own
logs, are not indexed. Placeholders and lineage blocks are left out because their originals are
indexed elsewhere. Our own output is left out because a search would otherwise find earlier
searches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.sessions.child_titles import root_title_of
from resume_hooks.sessions.lineage_block import LINEAGE_END_MARKER, LINEAGE_START_MARKER
from resume_hooks.transcripts import metadata_records, records, script_calls
from resume_hooks.transcripts.attachments import (
    QUEUED,
    TRIMMABLE_ATTACHMENT_KINDS,
    attachment_kind,
    iterate_sent_texts,
    list_hook_texts,
)
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, get_string

OWN_ENGINE_TOOL_NAME = "resume-hooks"  # The tool name that is recorded for calls to our own engine.
# Maximum length of a path in characters. No system opens a longer path.
MAX_PATH_CHARACTERS = 4_096
SEARCH_AGENT_NAMES = frozenset({"resume-hooks:session-searcher", "session-searcher"})
"""Names of agents that only search. Their tasks and answers repeat the texts that they found."""

_ENGINE_CALL_PATTERN = re.compile(
    r"""\s*(?:cd \S+ && )?"""
    r"""(?:"[^"]*/hooks/engine"|'[^']*/hooks/engine'|\S*/hooks/engine|(?:\S*python\S* -m )?resume[-_]hooks)"""
    r"""\s+(?:search|outline|read|lineage|sessions|info|find-\w+)\b[^;&|<>`$\n]*\Z"""
)
"""Matches a shell command that only calls our engine."""

_OWN_OUTPUT_PATTERN = re.compile(
    r'resume-hooks (?:search|outline|read|sessions)[:·]|\s*\{\s*"schema":\s*1,\s*"verb":'
)
# Matches the explanation of placeholders, which follows the lineage block in a trimmed child.
_PLACEHOLDER_LEGEND_EXPRESSION = r"(?:\nText such as \[[^\n]*)?"
_DIGEST_EXPRESSION = rf"^{re.escape(metadata_records.DIGEST_BEGINNING)}[^\n]*(?:\n[^\n]+)*"
"""Matches the digest in a child. Its quotes are indexed in the parent."""

_BLOCK_CONTENT_EXPRESSION = (
    r"(?:[^\[]++|\[(?!"
    rf"{re.escape(LINEAGE_START_MARKER[1:])}|{re.escape(LINEAGE_END_MARKER[1:])}))*+"
)
"""Matches the content of a block up to the next marker. Stopping there ensures that a text full of
opening markers is scanned only once."""

_LINEAGE_BLOCK_PATTERN = re.compile(
    f"{re.escape(LINEAGE_START_MARKER)}{_BLOCK_CONTENT_EXPRESSION}{re.escape(LINEAGE_END_MARKER)}{_PLACEHOLDER_LEGEND_EXPRESSION}|{_DIGEST_EXPRESSION}",
    re.MULTILINE,
)
_OWN_CARD_BEGINNINGS = ("<local-command-stdout>resume-hooks", "resume-hooks: ")
"""Beginnings of system records that contain a message of this plugin."""
_BLOCKED_PROMPT_TEXT = "operation blocked by hook"


class RecordTexts(NamedTuple):
    """The texts of a record, divided into the columns ``prompt``, ``reply``, ``input`` and ``result``.

    ``role`` is the record's role, ``tool`` is the tool that it calls or answers, and ``files`` are
    the files that the tool used.
    """

    role: str
    tool: str = ""
    prompt: str = ""
    reply: str = ""
    input: str = ""
    result: str = ""
    files: tuple[str, ...] = ()

    @property
    def has_no_texts(self) -> bool:
        """Whether the record has neither texts nor files to index."""
        return not (self.prompt or self.reply or self.input or self.result or self.files)


class TextExtractor:
    """Extracts the texts of one file's records, which must be passed in order.

    ``open_calls`` maps the ids of calls that have no answer yet to their tools. If
    ``omits_own_output`` is false, our own output is not removed. This is useful for records that
    the index found, because the index does not contain our own output.
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
        """Whether the file is an imported session, in which answers do not name a model."""

    def extract_texts(self, record: Record) -> RecordTexts | None:
        """Return the texts of a record, or None if it has none."""
        self._is_imported = self._is_imported or metadata_records.IMPORT_FIELD in record
        kind = records.get_kind(record)
        if kind in metadata_records.KINDS_WITHOUT_CONVERSATION_TEXT:
            return None
        texts: RecordTexts | None
        if kind == records.ASSISTANT:
            # Two kinds of messages were not written by a model: the opening that we write into a
            # new session, and the message with which the client replaces a missing answer.
            is_synthetic = (
                get_string(records.get_message(record), "model") == records.SYNTHETIC_MODEL
            )
            is_reported = record.get(
                "isApiErrorMessage"
            ) is True or script_calls.was_written_by_script(record)
            is_ours = (
                is_synthetic and self._omits_own_output and not (is_reported or self._is_imported)
            )
            texts = None if is_ours else self._extract_assistant_texts(record)
        elif kind in {records.USER, records.RESULT, records.CALL}:
            # Plain exports contain records of the kinds RESULT and CALL.
            if script_calls.is_copied_error_record(record):
                texts = None
            else:
                texts = self._extract_user_texts(script_calls.fill_empty_result(record))
        elif kind in metadata_records.TITLE_FIELDS_BY_KIND:
            texts = self._extract_title(
                get_string(record, metadata_records.TITLE_FIELDS_BY_KIND[kind])
            )
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
                tools.append(self._add_tool_call(block, inputs, files))
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
            _join_texts_without_blocks(reply),
            _join_texts_without_blocks(inputs),
            "",
            tuple(files),
        )

    def _add_tool_call(self, block: Record, inputs: list[str], files: list[str]) -> str:
        name, values = get_string(block, "name"), records.get_mapping(block, "input")
        if name == "Bash":
            own_call = _ENGINE_CALL_PATTERN.match(get_string(values, "command"))
        else:
            own_call = None
        is_searcher = (
            name in {"Agent", "Task"} and get_string(values, "subagent_type") in SEARCH_AGENT_NAMES
        )
        is_own = self._omits_own_output and (is_searcher or own_call is not None)
        self.open_calls[get_string(block, "id")] = OWN_ENGINE_TOOL_NAME if is_own else name
        if not is_own:
            inputs += records.iterate_strings(values)
            files += (
                path
                for key in records.FILE_PATH_INPUT_NAMES
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
                if called_tool != OWN_ENGINE_TOOL_NAME:
                    # Our engine's output can only come from a shell tool. If another tool's answer
                    # contains the same text, it comes from somewhere else.
                    results += _answer_texts(
                        block,
                        omits_own_output=self._omits_own_output and called_tool in ("", "Bash"),
                    )
        if tool or results or records.get_kind(record) == records.RESULT:
            plain_contents = [get_string(record, "content")] if not results else []
            return RecordTexts(
                "result",
                "" if tool == OWN_ENGINE_TOOL_NAME else tool,
                "",
                "",
                "",
                _join_texts_without_blocks([*spoken_texts, *results, *plain_contents]),
            )
        return self._extract_message_text(record, _join_texts_without_blocks(spoken_texts))

    def _extract_message_text(self, record: Record, text: str) -> RecordTexts:
        """Return the text of a user record that is not a tool's answer.

        The text is a prompt, a sub-agent's task, a summary, or a text that the client inserted.
        """
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
        """Return a session's title, or None if it is already known, because clients repeat the title."""
        if title in self._seen_titles or root_title_of(title) != title:
            return None  # A derived session's title only repeats the title of its original session.
        self._seen_titles.add(title)
        return RecordTexts("title", prompt=title)


def _extract_other_texts(record: Record, kind: str) -> RecordTexts | None:
    if kind == records.ATTACHMENT:
        sent_kind = attachment_kind(record)
        if sent_kind not in TRIMMABLE_ATTACHMENT_KINDS and sent_kind != QUEUED:
            return None
        texts = [text for _, text in iterate_sent_texts(record)]
        if any(metadata_records.LATER_PART_PREFIX in text for text in texts):
            # Later parts of an opening continue its quotes, which are indexed in the sessions that
            # they come from. ``list_hook_texts`` joins the parts of a hook's text, and omits all
            # other texts.
            texts = list_hook_texts(record)
        text = _join_texts_without_blocks(texts)
        if sent_kind == QUEUED:
            return RecordTexts("prompt", prompt=text)
        return RecordTexts("note", result=text)
    if kind == records.PROGRESS:
        # Old clients store the records of a sub-agent in the session's own file.
        blocks = records.list_blocks(
            records.get_mapping(records.get_mapping(record, "data"), "message")
        )
        return RecordTexts(
            "note",
            result=_join_texts_without_blocks(
                [t for block in blocks for t in (get_string(block, "text"), *_answer_texts(block))]
            ),
        )
    content = get_string(record, "content")
    if _BLOCKED_PROMPT_TEXT in content[:200] or content.startswith(_OWN_CARD_BEGINNINGS):
        # This text never reached the model. If it were indexed, searches would find our own cards.
        return None
    return RecordTexts("note", result=_join_texts_without_blocks([content]))


def _answer_texts(block: Record, *, omits_own_output: bool = True) -> Iterator[str]:
    """Yield the texts of a tool's answer. If ``omits_own_output`` is true, leave out our own."""
    for part in records.result_blocks(block):
        text = get_string(part, "text")
        if text and not (omits_own_output and _OWN_OUTPUT_PATTERN.match(text)):
            yield text


def _join_texts_without_blocks(texts: list[str]) -> str:
    """Join texts after removing our placeholders and blocks from them."""
    own_texts = (text for text in texts if text and not is_placeholder(text))
    return "\n".join(
        _LINEAGE_BLOCK_PATTERN.sub(" ", text) if LINEAGE_START_MARKER in text else text
        for text in own_texts
    )
