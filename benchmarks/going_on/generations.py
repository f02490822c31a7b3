"""Count the facts that are left after five handoffs in a row.

``python -m benchmarks.going_on.generations [MORE]``. A session gets 8,000 tokens of talk from turns
of real sessions, with calls between the messages. It also gets 20 facts of each of five kinds, in
prompts of their own or in other prompts. The assistant states half of the plain facts. Then the
session is handed off five times, and each child gets ``MORE`` tokens of talk (default: 500). Some
facts are first stated in a child, and some get new values in a child.

A fact is kept if a sentence of the opening has its subject and its current value. An old value
counts as unmarked if a sentence states it with the subject, and no mark below the sentence's
message says that it is superseded. The baseline's opening is as long as ours: it is the end of the
baseline's previous opening and of the talk after it.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.going_on.planted import (
    GENERATION_COUNT,
    WORDING_BY_FACT_KIND,
    Fact,
    make_planted_facts,
)
from resume_hooks.derive.fresh_child import read_opening
from resume_hooks.reading.digest.opening import DEFAULT_OPENING_TOKENS, convert_tokens_to_characters
from resume_hooks.transcripts import records
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    session_bytes,
    tool_result,
    tool_use,
    user,
)
from tests.needs import corpus_sessions

SEEDS = (48, 49, 50, 51, 52)
FIRST_TALK_TOKENS, MORE_TALK_TOKENS = 8_000, 500
"""The numbers of tokens of talk in the first session and in each child."""

MAX_MESSAGE_CHARACTERS = 1_500
"""Maximum number of characters of a message. Longer messages of real sessions are cut."""

MIN_SESSION_BYTES = 50_000
"""Minimum number of bytes of a real session whose turns are used. Smaller sessions contain little
work."""

END_RECORD: Record = {"type": "user", "message": {"role": "user", "content": "end of the session"}}

SUPERSEDED_MARK = "[superseded at "
_SENTENCE_END_PATTERN = re.compile(r"(?<=[.!?])\s+|\n")


class Turn(NamedTuple):
    """A prompt of the user, and the messages of the answer."""

    prompt: str
    answer_messages: Sequence[str]

    @property
    def character_count(self) -> int:
        """The number of characters in the turn."""
        return len(self.prompt) + sum(map(len, self.answer_messages))


class FactCounts(NamedTuple):
    """The numbers of facts, kept facts, old values, and old values without a mark."""

    fact_count: int
    kept_fact_count: int
    old_value_count: int
    unmarked_value_count: int

    def add(self, other: FactCounts) -> FactCounts:
        """Return the sums of these counts and the other counts."""
        return FactCounts(*(one + more for one, more in zip(self, other, strict=True)))


def real_turns(random_source: random.Random) -> Iterator[Turn]:
    """Yield the turns of real sessions, one session after another."""
    paths = [path for path in corpus_sessions() if path.stat().st_size > MIN_SESSION_BYTES]
    random_source.shuffle(paths)
    for path in paths:
        prompt, answer = "", list[str]()
        for record in [*map(records.parse_record, path.read_bytes().split(b"\n")), END_RECORD]:
            if record is not None and records.is_prompt(record):
                if prompt and answer:
                    yield Turn(prompt, answer)
                prompt, answer = records.prompt_text(record)[:MAX_MESSAGE_CHARACTERS].strip(), []
            elif (
                record is not None
                and records.get_kind(record) == records.ASSISTANT
                and records.join_text_blocks(record).strip()
            ):
                answer.append(records.join_text_blocks(record)[:MAX_MESSAGE_CHARACTERS].strip())


class PlantedTalk:
    """Makes the talk of each generation: turns of real sessions with planted facts."""

    def __init__(self, facts: Sequence[Fact], random_source: random.Random) -> None:
        self._turns = real_turns(random_source)
        self._facts = facts
        self._dice = random_source

    def make_turns(self, generation: int, character_count: int) -> list[Turn]:
        """Return turns of about ``character_count`` characters in all. They contain the statements of a generation."""
        told = [
            one for fact in self._facts for one in fact.statements if one.generation == generation
        ]
        self._dice.shuffle(told)
        room = character_count - sum(len(statement.sentence) for statement in told)
        found: list[Turn] = []
        while room > 0 or not found:
            found.append(next(self._turns))
            room -= found[-1].character_count
        for statement in told:
            at = self._dice.randrange(len(found))
            prompt, answer = found[at]
            if statement.is_by_assistant:
                found[at] = Turn(prompt, [*answer[:-1], f"{answer[-1]}\n\n{statement.sentence}"])
            elif self._dice.random() < 0.5:
                found[at] = Turn(f"{prompt}\n\n{statement.sentence}", answer)
            else:
                found.insert(at, Turn(statement.sentence, ["Understood."]))
        return found


class ChainBuilder:
    """Makes records to append to a session, the first one after the record with the uuid ``leaf``."""

    def __init__(self, session_id: str, leaf: str | None, count: int) -> None:
        self.records: list[Record] = []
        self.count = count
        self._session_id = session_id
        self._leaf = leaf

    def add_turn(self, turn: Turn) -> None:
        """Add the records of a turn, with a tool call after each message except the last."""
        self._append_record(user(turn.prompt, **self._next_record_fields()))
        for number, text in enumerate(turn.answer_messages, 1):
            self._append_record(assistant(text, tokens=40_000, **self._next_record_fields()))
            if number < len(turn.answer_messages):
                call_id = f"toolu_{self.count}"
                command = {"command": f"make check-{self.count % 7}"}
                self._append_record(
                    tool_use(call_id, name="Bash", tool_input=command, **self._next_record_fields())
                )
                self._append_record(tool_result(call_id, "ok", **self._next_record_fields()))

    def _next_record_fields(self) -> dict[str, Any]:
        self.count += 1
        uuid = f"{self.count:08x}-0000-4000-8000-00000000abcd"
        return {
            "uuid": uuid,
            "parent": self._leaf,
            "ts": self.count,
            "session_id": self._session_id,
        }

    def _append_record(self, record: Record) -> None:
        self.records.append(record)
        self._leaf = record["uuid"]


def make_openings(
    home: ConfigHome, talk: PlantedTalk, more_tokens: int
) -> Iterator[tuple[str, str]]:
    """Yield the opening of each child, and the text of the baseline for the same generation."""
    path = home.project() / f"{SESSION}.jsonl"
    leaf, count, pasted = None, 0, ""
    for generation in range(GENERATION_COUNT):
        turns = talk.make_turns(
            generation,
            convert_tokens_to_characters(more_tokens if generation else FIRST_TALK_TOKENS),
        )
        chain = ChainBuilder(path.stem, leaf, count)
        for turn in turns:
            chain.add_turn(turn)
        with open(path, "ab") as stream:
            stream.write(session_bytes(chain.records))
        count = chain.count
        said = "\n".join("\n".join((turn.prompt, *turn.answer_messages)) for turn in turns)
        pasted = f"{pasted}\n{said}"[-convert_tokens_to_characters(DEFAULT_OPENING_TOKENS) :]
        path = hand_off(home, path)
        last = records.parse_record(path.read_bytes().rstrip(b"\n").split(b"\n")[-1])
        leaf = records.get_string(last or {}, "uuid")
        yield str(read_opening(str(path))), pasted


def hand_off(home: ConfigHome, path: Path) -> Path:
    """Hand a session off with the verb, at the usual size. Return the child's path."""
    command = [sys.executable, "-m", "resume_hooks", "handoff", path.stem, "-n", "go on", "--json"]
    environ = {**home.environ, "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environ, cwd=home.root, capture_output=True, check=True)
    return Path(json.loads(done.stdout)["data"]["file"])


def _states_value(message: str, subject: str, value: str) -> bool:
    """Check whether a message states a subject's value, and no mark below it says that the value is old."""
    rows = [row.strip() for row in message.lower().split("\n")]
    marks = [row for row in rows if row.startswith(SUPERSEDED_MARK)]
    if any(subject in mark and value in mark for mark in marks):
        return False
    sentences = (sentence for row in rows for sentence in _SENTENCE_END_PATTERN.split(row))
    return any(subject in sentence and value in sentence for sentence in sentences)


def count_facts_in(opening: str, facts: Sequence[Fact]) -> FactCounts:
    """Count the facts whose current value an opening states, and the old values that it does not mark."""
    messages = re.split(r"\n(?=\S)", opening)

    def is_value_stated(fact: Fact, value: str) -> bool:
        return any(
            _states_value(message, fact.subject.lower(), value.lower()) for message in messages
        )

    old = [(fact, value) for fact in facts for value in fact.old_values]
    kept_facts = [fact for fact in facts if is_value_stated(fact, fact.current_value)]
    return FactCounts(
        len(facts), len(kept_facts), len(old), sum(is_value_stated(*pair) for pair in old)
    )


def main(more_tokens: int, *, in_unseen_words: bool) -> None:
    """Print a row for each kind of fact, for the last openings of all seeds."""
    ours, pasted = (
        dict.fromkeys((*WORDING_BY_FACT_KIND, "all"), FactCounts(0, 0, 0, 0)) for _ in range(2)
    )
    for seed in SEEDS:
        random_source = random.Random(seed)
        facts = make_planted_facts(random_source, in_unseen_words=in_unseen_words)
        with tempfile.TemporaryDirectory() as root:
            *_, last = make_openings(
                ConfigHome.at(Path(root)), PlantedTalk(facts, random_source), more_tokens
            )
        for kind in ours:
            of_kind = [fact for fact in facts if kind in {fact.kind, "all"}]
            ours[kind] = ours[kind].add(count_facts_in(last[0], of_kind))
            pasted[kind] = pasted[kind].add(count_facts_in(last[1], of_kind))
        if "--missed" in sys.argv:
            wrong = [
                fact
                for fact in facts
                if count_facts_in(last[0], [fact]) != (1, 1, len(fact.old_values), 0)
            ]
            print("\n".join(f"  {[one.sentence for one in fact.statements]}" for fact in wrong))
    words = ", new values in words that no rule was made on" if in_unseen_words else ""
    print(
        f"{len(SEEDS)} sessions of {FIRST_TALK_TOKENS} tokens, {GENERATION_COUNT} handoffs, "
        f"{more_tokens} more tokens in each child{words}"
    )
    print(
        "| facts | kept | old values unmarked | pasted: kept | old values unmarked |\n|---|---|---|---|---|"
    )
    for kind, one in ours.items():
        other = pasted[kind]
        cells = [
            kind,
            f"{one.kept_fact_count} of {one.fact_count}",
            f"{one.unmarked_value_count} of {one.old_value_count}",
            str(other.kept_fact_count),
        ]
        print(f"| {' | '.join([*cells, str(other.unmarked_value_count)])} |")


if __name__ == "__main__":
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    for in_unseen_words in (False, True):
        main(int(numbers[0]) if numbers else MORE_TALK_TOKENS, in_unseen_words=in_unseen_words)
