"""What an outline is made of, gathered while a transcript is scanned: prompts, calls, files, compactions."""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks.reading.passages import failed_in, says, without_reminders
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.turns import opens_turn

FIRST_WORDS = 200  # characters of a prompt that an outline has
READ_OF_PROMPT = 4_000  # characters of a prompt that are looked at for its first words


class Compaction(NamedTuple):
    """A compaction within or after turn ``turn``; ``summary`` is the line of its summary, -1 for none."""

    turn: int
    line: int
    time: str
    trigger: str
    tokens_before: int
    summary: int


class TurnScan:
    """A turn that is being gathered; ``before`` are the tokens of the context that it began with, 0 for unknown."""

    def __init__(self, number: int, line: int, before: int) -> None:
        self.number = number
        self.line = line
        self.before = before
        self.time = ""
        self.first_words = ""
        self.tools: dict[str, int] = {}
        self.failed = 0
        self.files: dict[str, bool] = {}
        self.tokens = 0
        self.empty = True


class OutlineScan:
    """An observer of ``transcript.scan`` that gathers an outline; ``subagent``: the file is a sub-agent's own."""

    def __init__(self, *, subagent: bool) -> None:
        self.subagent = subagent
        self.turns = [TurnScan(0, 0, 0)]
        self.compactions: list[Compaction] = []
        self.tasks: dict[str, str] = {}
        self.agents: dict[str, tuple[int, str]] = {}

    @property
    def count(self) -> int:
        """The turns so far."""
        return len(self.turns) - 1

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Take in one record."""
        if node is not None and node.copied:
            return
        if opens_turn(record, subagent=self.subagent):
            turn = TurnScan(len(self.turns), line.number, self.turns[-1].tokens)
            turn.first_words, turn.time = first_words(record), string(record, "timestamp")
            self.turns.append(turn)
        turn = self.turns[-1]
        if node is not None and node.boundary:
            self._take_boundary(line, record)
        if record.get("isSidechain") and not self.subagent:
            return  # clients before 2.0 wrote the work of sub-agents into the session itself
        if turn.empty and says(record) and records.kind(record) not in {records.ATTACHMENT, records.SYSTEM}:
            turn.empty = False
            if not turn.number:
                turn.time, turn.line = string(record, "timestamp"), line.number
        if record.get("isCompactSummary"):
            self._take_summary(line.number)
        self._take_work(turn, record, node)

    def _take_boundary(self, line: Line, record: Record) -> None:
        metadata = records.mapping(record, "compactMetadata")
        at, trigger, tokens = string(record, "timestamp"), string(metadata, "trigger"), records.tokens_before(record)
        self.compactions.append(Compaction(self.count, line.number, at, trigger, tokens, -1))
        self.turns[-1].before = self.turns[-1].tokens = 0  # what was counted before says nothing of what comes

    def _take_summary(self, number: int) -> None:
        if self.compactions and self.compactions[-1].summary < 0:
            self.compactions[-1] = self.compactions[-1]._replace(summary=number)

    def _take_work(self, turn: TurnScan, record: Record, node: Node | None) -> None:
        kind = string(record, "type")
        if kind == records.ASSISTANT:
            turn.tokens = records.counted_tokens(record)[1] or turn.tokens
            for block in records.calls(record) if node is None or node.calls else ():
                self._take_call(turn, block)
        elif kind == records.RESULT:  # of a plain export, whose calls may not have been kept
            tool = string(records.message(record), "tool_name")
            turn.failed += len(failed_in(record))
            if tool and not string(records.message(record), "tool_use_id"):
                turn.tools[tool] = turn.tools.get(tool, 0) + 1
        elif node is not None and node.results:
            turn.failed += len(failed_in(record))
            self._take_agent(record, node)

    def _take_call(self, turn: TurnScan, block: Record) -> None:
        tool, given = string(block, "name"), records.mapping(block, "input")
        turn.tools[tool] = turn.tools.get(tool, 0) + 1
        if path := records.file_in(given):
            turn.files[path] = turn.files.get(path, False) or tool in records.WRITERS
        if "subagent_type" in given or tool in {"Agent", "Task"}:
            self.tasks[string(block, "id")] = string(given, "description") or string(given, "prompt")[:FIRST_WORDS]

    def _take_agent(self, record: Record, node: Node) -> None:
        if agent := records.agent_of(record):
            task = self.tasks.get(node.results[0], "") or string(records.tool_details(record), "description")
            self.agents.setdefault(agent, (self.count, task))


def first_words(record: Record) -> str:
    """How a prompt begins, in one line, without what the client put around it."""
    said = records.prompt_text(record)[:READ_OF_PROMPT]
    words = one_line(plain_line(without_reminders(said)), FIRST_WORDS) or one_line(plain_line(said), FIRST_WORDS)
    kinds = dict.fromkeys(string(block, "type") for block in records.blocks(record))
    return words or f"({', '.join(kind for kind in kinds if kind != records.TEXT) or 'nothing'})"
