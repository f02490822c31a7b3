"""The recorded scenarios, each some steps in one home: for every session, for some sessions, and for damaged ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tools.recorder.sessions import CLAUDE, CODEX, Session

MESSAGES = "messages"
"""The field of an event for the client's messages, which come from the session's file."""

CLI, PROMPT, MODULE, SESSION, NOTICE, CODEX_EVENT = (
    "cli",
    "prompt",
    "module",
    "session",
    "notice",
    "codex",
)
"""The entry points ("doors"): the shell, and the questions of the client's hooks.

``run.py`` finds the scripts behind them.
"""


class Step(NamedTuple):
    """A call of a door. ``{id}``, ``{child}`` and ``{work}`` in its words are replaced.

    ``fields`` are the fields of the event, at any door except the shell's. A step ``in_child`` runs
    in the session that was made last. Steps about a child are left out if none was made.
    ``environ`` is added to the usual environment.
    """

    door: str
    words: tuple[str, ...] = ()
    fields: dict[str, Any] = {}  # noqa: RUF012 - never changed
    in_child: bool = False
    environ: dict[str, str] = {}  # noqa: RUF012 - never changed

    @property
    def name(self) -> str:
        """The name of the step in the record."""
        told = (
            self.fields.get("prompt")
            or self.fields.get("source")
            or self.fields.get("reason")
            or ""
        )
        if self.door == MODULE:
            values = [
                self.fields[name]
                for name in ("command", "trigger", "args", "step")
                if self.fields.get(name)
            ]
            told = " ".join((*values, *self.environ.values()))
        return " ".join(
            filter(None, (self.door, *self.words, told, "in the child" if self.in_child else ""))
        )


Scenario = tuple[Step, ...]


def shell(words: str, *more: str) -> Step:
    """Return the step of a command line: its words, separated by spaces, then words that may contain spaces."""
    return Step(CLI, (*words.split(), *more))


def typed(prompt: str, *, in_child: bool = False) -> Step:
    """Return the step of a prompt that is typed in the session."""
    return Step(PROMPT, (), {"hook_event_name": "UserPromptSubmit", "prompt": prompt}, in_child)


def asked(command: str, args: str = "", *, in_child: bool = False, **fields: Any) -> Step:
    """Return the step of a question from the client's module."""
    given = {"command": command, "args": args, "screen": True, "window": 200_000, "heard": True}
    return Step(MODULE, (), {**given, **fields}, in_child)


def compacting(setting: str, trigger: str, **fields: Any) -> Step:
    """Return the step of the module's question at a compaction, with a value of the setting ``compaction``."""
    event = {
        "command": "plan",
        "trigger": trigger,
        "screen": True,
        "window": 200_000,
        "heard": True,
        MESSAGES: True,
    }
    return Step(MODULE, (), {**event, **fields}, environ={"RESUME_HOOKS_COMPACTION": setting})


def started(source: str, *asked_for: str, **fields: Any) -> Step:
    """A session's start."""
    return Step(SESSION, asked_for, {"hook_event_name": "SessionStart", "source": source, **fields})


STEP = "fix the tests"

MAIN: tuple[Scenario, ...] = (
    (shell("handoff {id} --json -n", STEP), shell("lineage {child} --json")),
    (typed(f">handoff 4k {STEP}"), typed(f">handoff 4k {STEP}")),
    (typed(">resume"),),
    (shell("trim {id} --json"), shell("untrim {child} --all --json")),
    (typed(">trim"), typed(">trim yes"), typed(">untrim", in_child=True)),
    (shell("fork {id} --json"),),
    (shell("info {id} --json"), shell("fsck {id} --json"), shell("outline {id} --json")),
    (started("compact"),),
)
"""For every session."""

CHILDREN: tuple[Scenario, ...] = (
    (shell("handoff {id} --size 1k"),),
    (shell("handoff {id} --size 24k --json -n", STEP),),
    (shell("handoff {id} --size all --json"),),
    (shell("handoff {id} --json --new-task", "write the release notes"),),
    (
        shell("handoff {id} --print"),
        shell("handoff {id} --print --full"),
        shell("handoff {id} --dry-run --json"),
    ),
    (shell("handoff {id} --out {work}/docs/ --json"),),
    (shell("trim {id}"), shell("untrim {child} --all"), shell("trim {child} --json")),
    (
        shell("trim {id} --threshold 300 --keep-recent 1 --json"),
        shell("untrim {child} --record 5 --json"),
    ),
    (shell("trim {id} --target-tokens 8000 --json"),),
    (
        shell("trim {id} --only results,inputs --json"),
        shell("trim {id} --skip thinking --assistant 3 --json"),
    ),
    (shell("trim {id} --dry-run"), shell("trim {id} --dry-run --json --min-savings 0")),
    (shell("trim {id} --in-place --json"), shell("untrim {id} --all --json")),
    (
        shell("fork {id} --turn 1 --json"),
        shell("fork {id} --turn -1"),
        shell("fork {id} --at 5 --json"),
    ),
    (
        shell("fork {id} --before-compaction --json"),
        shell("fork {id} --here --json"),
        shell("fork {id} --dry-run"),
    ),
    (shell("rollover {id} --json"), shell("rollover {id} --json")),
    (shell("rollover {id} --quick"), shell("rollover {id} --dry-run --json")),
    (
        shell("mark {id} --json -g", "try it"),
        shell("mark {id} --show"),
        shell("back {id} --json --report", "slow"),
    ),
)
"""Verbs of the shell that make children."""

TO_THE_OTHER: dict[str, tuple[Scenario, ...]] = {
    CLAUDE: (
        (shell("fork {id} --to codex --json"),),
        (shell("handoff {id} --to codex --json -n", STEP),),
    ),
    CODEX: (
        (shell("fork {id} --to claude --json"),),
        (shell("handoff {id} --to claude --json -n", STEP),),
    ),
}

READING: tuple[Scenario, ...] = (
    (
        shell("info {id}"),
        shell("fsck {id}"),
        shell("lineage {id}"),
        shell("outline {id}"),
        shell("read {id} --turns 1-2"),
        shell("read {id} --turns last --json"),
        shell("read {id} --errors"),
        shell("read {id} --commands"),
        shell("read {id} --page --limit 5 --json"),
        shell("read {id}:3"),
        shell("resume {id} --print --table"),
        shell("resume {id} --json"),
        shell("continue {id} --print"),
        shell("sessions --all"),
        shell("sessions --all --json"),
        shell("sessions --subagents --json"),
    ),
    (
        shell("resume {id} --way trim --print"),
        shell("resume {id} --way handoff --print"),
        shell("resume {id} --fork --print"),
    ),
    (
        shell("export {id} --format md -o -"),
        shell("export {id} --format json -o {work}/b.json --json"),
        shell("import {work}/b.json --json"),
    ),
    (
        shell("export {id} -o {work}/page.html --json"),
        shell("share {id} --yes --json -o {work}/s.html"),
    ),
    (
        shell("import {work}/given.jsonl --json"),
        shell("import {work}/given.jsonl --json"),
        shell("import {work}/given.jsonl --force --dry-run"),
    ),
    (shell("scrub {id} --list --json"), shell("scrub {id} --json")),
    (shell("fsck {id} --repair --json"),),
    (
        shell("rename {id} --json", "A new title"),
        shell("rename {id} --tag try"),
        shell("info {id} --json"),
    ),
    (
        shell("delete {id} --dry-run"),
        shell("delete {id} --yes --json"),
        shell("restore {id} --json"),
    ),
    (shell("archive {id} --json"), shell("archive --list --json"), shell("archive --verify")),
)
"""Verbs of the shell that read or move the session."""

TYPED: tuple[Scenario, ...] = (
    (
        typed(">resume --table"),
        typed(">continue"),
        typed(">session"),
        typed(">help"),
        typed(">lineage"),
    ),
    (
        typed(">recall"),
        typed(">resume the work"),
        typed("> a quote"),
        typed(">handoff help"),
        typed(">trim help"),
    ),
    (typed(">handoff"), started("startup"), typed(">handoff all")),
    (typed("/resume-hooks:handoff 12k --new-task write the notes"), typed(">handoff --sizze 4k")),
    (typed(">trim --threshold 300 --keep-recent 1"), typed(">trim yes")),
    (typed(">rollover stress the parser"), typed(">rollover stress the parser")),
    (typed(">mark try it"), typed(">back it was slow"), typed(">back again")),
    (typed(">search parser tests"), typed(">search --all error")),
    (
        typed(">handoff go on"),
        Step(SESSION, (), {"hook_event_name": "SessionEnd", "reason": "clear"}),
    ),
    (started("startup", "near-end", "new-folder"), started("resume", context_tokens=150_000)),
    (
        started(
            "resume",
            context_tokens=150_000,
            prompt_cache_likely_expired=True,
            estimated_cache_write_usd=1.25,
        ),
        Step(NOTICE, (), {"hook_event_name": "Stop"}),
    ),
)
"""Prompts that are typed in a session, and its starts."""

AFTER_CLEAR: tuple[Scenario, ...] = (
    (
        typed(">handoff go on"),
        Step(SESSION, (), {"hook_event_name": "SessionEnd", "reason": "clear"}),
        started("clear", session_id="99999999-9999-4999-8999-999999999999"),
        shell("lineage {id} --derived --all --json"),
    ),
)

ASKED: tuple[Scenario, ...] = (
    (asked("handoff", STEP),),
    (asked("handoff", "12k"), asked("handoff", "all"), asked("handoff", f"{STEP}", screen=False)),
    (asked("trim"), asked("trim", "yes"), asked("untrim", in_child=True)),
    (
        asked("trim", "--threshold 300 --keep-recent 1"),
        asked("trim", "here --threshold 300"),
        asked("trim", "cancel"),
    ),
    (asked("fsck"), asked("fsck", "yes")),
    (asked("rollover"), asked("rollover", "", waiting=True)),
    (
        asked("full"),
        asked("full", "--table"),
        asked("lineage"),
        asked("recall"),
        asked("resume-hooks:session"),
        asked("resume-hooks:help"),
        asked("band", tokens=120_000),
        asked("band", tokens=185_000),
        asked("compaction", "80"),
        asked("cold", context_tokens=150_000, prompt_cache_likely_expired=True),
        asked("moved"),
        asked("offer"),
        asked("tool", STEP),
        asked("rules"),
        asked("left", "rollover"),
    ),
    (
        asked("sessions"),
        asked("search", "parser"),
        asked("pane", "", columns=100, lines=30),
        asked("pane", "parser", columns=100, lines=30, step="said"),
        asked("pane", "", columns=100, lines=30, step="preview"),
    ),
    (asked("mark", "try it"), asked("back", "it was slow")),
    (compacting("trim", "auto"), compacting("handoff", "auto"), compacting("client", "auto")),
    (compacting("trim", "manual", options="--threshold 300"), compacting("trim@10k", "line")),
)
"""Questions of the module, for Claude Code sessions only."""

OF_CODEX: tuple[Scenario, ...] = (
    (
        Step(CODEX_EVENT, ("compact",), {"hook_event_name": "PreCompact", "trigger": "auto"}),
        Step(CODEX_EVENT, ("notice",), {"hook_event_name": "Stop"}),
    ),
)

DAMAGED: tuple[Scenario, ...] = (
    (shell("handoff {id} --json -n", STEP),),
    (shell("trim {id} --json"), shell("untrim {child} --all --json")),
    (shell("fork {id} --json"),),
    (shell("fsck {id} --json"), shell("info {id} --json"), shell("fsck {id} --repair --json")),
    (typed(">handoff"), typed(">resume"), typed(">trim")),
)
"""Scenarios for every damaged session."""

WHOLE_HOME: Scenario = (
    shell("doctor --index update --json"),
    shell("sessions --all --limit 0"),
    shell("sessions --all --limit 0 --json"),
    shell("sessions --json"),
    shell("sessions --all --expiring"),
    shell("sessions --all --agent codex --json"),
    *(
        shell(f"search --all {rest}")
        for rest in (
            "parser tests",
            "why did the build fail --json",
            "error --tool Bash --json",
            '"not found" --json',
            "docker --role user",
            "test --since 2025-10-01 --until 2026-02-01 --json",
            "qzxwv",
            "search retry --or parser --limit 30 --json",
            "--file README.md --json",
            "--agent codex sandbox --json",
        )
    ),
    shell("stats --all --json"),
    shell("stats --all --threshold"),
    shell("fsck --all --json"),
    shell("scrub --list --all --json"),
    shell("archive --all --json"),
    shell("archive --list"),
    shell("resume parser --json"),
    shell("resume", "no such title"),
    shell("continue --print"),
    shell("info 00000000"),
    shell("config"),
    shell("config --json"),
    shell("restore --list"),
    shell("rehome --dry-run --json /home/user/proj"),
    shell("team status"),
    shell("nonsense"),
    shell("handoff --size 7"),
    shell("index"),
)
"""Verbs on a home with many sessions."""


COMPACTED: tuple[Scenario, ...] = (
    (shell("fork {id} --before-compaction --json"), shell("read {id} --turns 1 --json")),
    (typed(">recall"), typed(">resume --table")),
)
"""Scenarios for every compacted session."""


def scenarios_of(session: Session, *, every: bool) -> Iterator[Scenario]:
    """Return the scenarios for an undamaged session: the main ones, or all with ``every``."""
    yield from MAIN
    if b"compact_boundary" in session.content or b'"type":"compacted"' in session.content:
        yield from COMPACTED
    if not every:
        return
    yield from (*CHILDREN, *TO_THE_OTHER[session.agent], *READING, *TYPED)
    yield from (*AFTER_CLEAR, *ASKED) if session.agent == CLAUDE else OF_CODEX
