"""The recorded scenarios. Each consists of some steps in one home.

There are scenarios for every session, for some sessions, and for damaged sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tools.recorder.sessions import CLAUDE, CODEX, Session

MESSAGES_FIELD = "messages"
"""The field of an event that is filled with the messages from the session's file."""

CLI, PROMPT, MODULE, SESSION, NOTICE, CODEX_EVENT = (
    "cli",
    "prompt",
    "module",
    "session",
    "notice",
    "codex",
)
"""The names of the entry points: the command line, and the hooks and the module of the clients.

``run.py`` finds the script of each.
"""


class Step(NamedTuple):
    """A call of an entry point.

    In ``arguments``, ``{id}``, ``{child}`` and ``{work}`` are replaced. ``event_fields`` are the fields
    of the event. The command line gets no event. A step with ``is_in_child`` runs in the session that
    was made last. If no session was made, steps about a child are skipped. ``environ`` is added to the
    usual environment variables.
    """

    entry_point: str
    arguments: tuple[str, ...] = ()
    event_fields: dict[str, Any] = {}  # noqa: RUF012 - never changed
    is_in_child: bool = False
    environ: dict[str, str] = {}  # noqa: RUF012 - never changed

    @property
    def name(self) -> str:
        """The name of the step in a record."""
        told = (
            self.event_fields.get("prompt")
            or self.event_fields.get("source")
            or self.event_fields.get("reason")
            or ""
        )
        if self.entry_point == MODULE:
            values = [
                self.event_fields[name]
                for name in ("command", "trigger", "args", "step")
                if self.event_fields.get(name)
            ]
            told = " ".join((*values, *self.environ.values()))
        return " ".join(
            filter(
                None,
                (
                    self.entry_point,
                    *self.arguments,
                    told,
                    "in the child" if self.is_in_child else "",
                ),
            )
        )


Scenario = tuple[Step, ...]


def shell_step(command: str, *more_arguments: str) -> Step:
    """Return the step of a command line.

    ``command`` is split at its spaces. Each of ``more_arguments`` may contain spaces.
    """
    return Step(CLI, (*command.split(), *more_arguments))


def prompt_step(prompt: str, *, is_in_child: bool = False) -> Step:
    """Return the step of a prompt that the user types in the session."""
    return Step(PROMPT, (), {"hook_event_name": "UserPromptSubmit", "prompt": prompt}, is_in_child)


def module_step(command: str, args: str = "", *, is_in_child: bool = False, **fields: Any) -> Step:
    """Return the step of a question that the client's module asks."""
    given = {"command": command, "args": args, "screen": True, "window": 200_000, "heard": True}
    return Step(MODULE, (), {**given, **fields}, is_in_child)


def compaction_step(setting: str, trigger: str, **fields: Any) -> Step:
    """Return the step of the question that the client's module asks at a compaction.

    ``setting`` is the value of the setting ``compaction``.
    """
    event = {
        "command": "plan",
        "trigger": trigger,
        "screen": True,
        "window": 200_000,
        "heard": True,
        MESSAGES_FIELD: True,
    }
    return Step(MODULE, (), {**event, **fields}, environ={"RESUME_HOOKS_COMPACTION": setting})


def start_step(source: str, *arguments: str, **fields: Any) -> Step:
    """Return the step of a session's start."""
    return Step(SESSION, arguments, {"hook_event_name": "SessionStart", "source": source, **fields})


NEXT_STEP = "fix the tests"

MAIN_SCENARIOS: tuple[Scenario, ...] = (
    (shell_step("handoff {id} --json -n", NEXT_STEP), shell_step("lineage {child} --json")),
    (prompt_step(f">handoff 4k {NEXT_STEP}"), prompt_step(f">handoff 4k {NEXT_STEP}")),
    (prompt_step(">resume"),),
    (shell_step("trim {id} --json"), shell_step("untrim {child} --all --json")),
    (prompt_step(">trim"), prompt_step(">trim yes"), prompt_step(">untrim", is_in_child=True)),
    (shell_step("fork {id} --json"),),
    (
        shell_step("info {id} --json"),
        shell_step("fsck {id} --json"),
        shell_step("outline {id} --json"),
    ),
    (start_step("compact"),),
)
"""The scenarios for every session."""

CHILD_SCENARIOS: tuple[Scenario, ...] = (
    (shell_step("handoff {id} --size 1k"),),
    (shell_step("handoff {id} --size 24k --json -n", NEXT_STEP),),
    (shell_step("handoff {id} --size all --json"),),
    (shell_step("handoff {id} --json --new-task", "write the release notes"),),
    (
        shell_step("handoff {id} --print"),
        shell_step("handoff {id} --print --full"),
        shell_step("handoff {id} --dry-run --json"),
    ),
    (shell_step("handoff {id} --out {work}/docs/ --json"),),
    (
        shell_step("trim {id}"),
        shell_step("untrim {child} --all"),
        shell_step("trim {child} --json"),
    ),
    (
        shell_step("trim {id} --threshold 300 --keep-recent 1 --json"),
        shell_step("untrim {child} --record 5 --json"),
    ),
    (shell_step("trim {id} --target-tokens 8000 --json"),),
    (
        shell_step("trim {id} --only results,inputs --json"),
        shell_step("trim {id} --skip thinking --assistant 3 --json"),
    ),
    (shell_step("trim {id} --dry-run"), shell_step("trim {id} --dry-run --json --min-savings 0")),
    (shell_step("trim {id} --in-place --json"), shell_step("untrim {id} --all --json")),
    (
        shell_step("fork {id} --turn 1 --json"),
        shell_step("fork {id} --turn -1"),
        shell_step("fork {id} --at 5 --json"),
    ),
    (
        shell_step("fork {id} --before-compaction --json"),
        shell_step("fork {id} --here --json"),
        shell_step("fork {id} --dry-run"),
    ),
    (shell_step("rollover {id} --json"), shell_step("rollover {id} --json")),
    (shell_step("rollover {id} --quick"), shell_step("rollover {id} --dry-run --json")),
    (
        shell_step("mark {id} --json -g", "try it"),
        shell_step("mark {id} --show"),
        shell_step("back {id} --json --report", "slow"),
    ),
)
"""Scenarios with verbs that make children."""

CROSS_AGENT_SCENARIOS: dict[str, tuple[Scenario, ...]] = {
    CLAUDE: (
        (shell_step("fork {id} --to codex --json"),),
        (shell_step("handoff {id} --to codex --json -n", NEXT_STEP),),
    ),
    CODEX: (
        (shell_step("fork {id} --to claude --json"),),
        (shell_step("handoff {id} --to claude --json -n", NEXT_STEP),),
    ),
}

READING_SCENARIOS: tuple[Scenario, ...] = (
    (
        shell_step("info {id}"),
        shell_step("fsck {id}"),
        shell_step("lineage {id}"),
        shell_step("outline {id}"),
        shell_step("read {id} --turns 1-2"),
        shell_step("read {id} --turns last --json"),
        shell_step("read {id} --errors"),
        shell_step("read {id} --commands"),
        shell_step("read {id} --page --limit 5 --json"),
        shell_step("read {id}:3"),
        shell_step("resume {id} --print --table"),
        shell_step("resume {id} --json"),
        shell_step("continue {id} --print"),
        shell_step("sessions --all"),
        shell_step("sessions --all --json"),
        shell_step("sessions --subagents --json"),
    ),
    (
        shell_step("resume {id} --way trim --print"),
        shell_step("resume {id} --way handoff --print"),
        shell_step("resume {id} --fork --print"),
    ),
    (
        shell_step("export {id} --format md -o -"),
        shell_step("export {id} --format json -o {work}/b.json --json"),
        shell_step("import {work}/b.json --json"),
    ),
    (
        shell_step("export {id} -o {work}/page.html --json"),
        shell_step("share {id} --yes --json -o {work}/s.html"),
    ),
    (
        shell_step("import {work}/given.jsonl --json"),
        shell_step("import {work}/given.jsonl --json"),
        shell_step("import {work}/given.jsonl --force --dry-run"),
    ),
    (shell_step("scrub {id} --list --json"), shell_step("scrub {id} --json")),
    (shell_step("fsck {id} --repair --json"),),
    (
        shell_step("rename {id} --json", "A new title"),
        shell_step("rename {id} --tag try"),
        shell_step("info {id} --json"),
    ),
    (
        shell_step("delete {id} --dry-run"),
        shell_step("delete {id} --yes --json"),
        shell_step("restore {id} --json"),
    ),
    (
        shell_step("archive {id} --json"),
        shell_step("archive --list --json"),
        shell_step("archive --verify"),
    ),
)
"""Scenarios with verbs that read or move the session."""

TYPED_PROMPT_SCENARIOS: tuple[Scenario, ...] = (
    (
        prompt_step(">resume --table"),
        prompt_step(">continue"),
        prompt_step(">session"),
        prompt_step(">help"),
        prompt_step(">lineage"),
    ),
    (
        prompt_step(">recall"),
        prompt_step(">resume the work"),
        prompt_step("> a quote"),
        prompt_step(">handoff help"),
        prompt_step(">trim help"),
    ),
    (prompt_step(">handoff"), start_step("startup"), prompt_step(">handoff all")),
    (
        prompt_step("/resume-hooks:handoff 12k --new-task write the notes"),
        prompt_step(">handoff --sizze 4k"),
    ),
    (prompt_step(">trim --threshold 300 --keep-recent 1"), prompt_step(">trim yes")),
    (prompt_step(">rollover stress the parser"), prompt_step(">rollover stress the parser")),
    (prompt_step(">mark try it"), prompt_step(">back it was slow"), prompt_step(">back again")),
    (prompt_step(">search parser tests"), prompt_step(">search --all error")),
    (
        prompt_step(">handoff go on"),
        Step(SESSION, (), {"hook_event_name": "SessionEnd", "reason": "clear"}),
    ),
    (start_step("startup", "near-end", "new-folder"), start_step("resume", context_tokens=150_000)),
    (
        start_step(
            "resume",
            context_tokens=150_000,
            prompt_cache_likely_expired=True,
            estimated_cache_write_usd=1.25,
        ),
        Step(NOTICE, (), {"hook_event_name": "Stop"}),
    ),
)
"""Scenarios with prompts that the user types in a session, and with starts of a session."""

CLEAR_SCENARIOS: tuple[Scenario, ...] = (
    (
        prompt_step(">handoff go on"),
        Step(SESSION, (), {"hook_event_name": "SessionEnd", "reason": "clear"}),
        start_step("clear", session_id="99999999-9999-4999-8999-999999999999"),
        shell_step("lineage {id} --derived --all --json"),
    ),
)

MODULE_SCENARIOS: tuple[Scenario, ...] = (
    (module_step("handoff", NEXT_STEP),),
    (
        module_step("handoff", "12k"),
        module_step("handoff", "all"),
        module_step("handoff", f"{NEXT_STEP}", screen=False),
    ),
    (module_step("trim"), module_step("trim", "yes"), module_step("untrim", is_in_child=True)),
    (
        module_step("trim", "--threshold 300 --keep-recent 1"),
        module_step("trim", "here --threshold 300"),
        module_step("trim", "cancel"),
    ),
    (module_step("fsck"), module_step("fsck", "yes")),
    (module_step("rollover"), module_step("rollover", "", waiting=True)),
    (
        module_step("full"),
        module_step("full", "--table"),
        module_step("lineage"),
        module_step("recall"),
        module_step("resume-hooks:session"),
        module_step("resume-hooks:help"),
        module_step("band", tokens=120_000),
        module_step("band", tokens=185_000),
        module_step("compaction", "80"),
        module_step("cold", context_tokens=150_000, prompt_cache_likely_expired=True),
        module_step("moved"),
        module_step("offer"),
        module_step("tool", NEXT_STEP),
        module_step("rules"),
        module_step("left", "rollover"),
    ),
    (
        module_step("sessions"),
        module_step("search", "parser"),
        module_step("pane", "", columns=100, lines=30),
        module_step("pane", "parser", columns=100, lines=30, step="said"),
        module_step("pane", "", columns=100, lines=30, step="preview"),
    ),
    (module_step("mark", "try it"), module_step("back", "it was slow")),
    (
        compaction_step("trim", "auto"),
        compaction_step("handoff", "auto"),
        compaction_step("client", "auto"),
    ),
    (
        compaction_step("trim", "manual", options="--threshold 300"),
        compaction_step("trim@10k", "line"),
    ),
)
"""The scenarios in which the client's module asks the engine, for Claude Code sessions only."""

CODEX_SCENARIOS: tuple[Scenario, ...] = (
    (
        Step(CODEX_EVENT, ("compact",), {"hook_event_name": "PreCompact", "trigger": "auto"}),
        Step(CODEX_EVENT, ("notice",), {"hook_event_name": "Stop"}),
    ),
)

DAMAGED_SCENARIOS: tuple[Scenario, ...] = (
    (shell_step("handoff {id} --json -n", NEXT_STEP),),
    (shell_step("trim {id} --json"), shell_step("untrim {child} --all --json")),
    (shell_step("fork {id} --json"),),
    (
        shell_step("fsck {id} --json"),
        shell_step("info {id} --json"),
        shell_step("fsck {id} --repair --json"),
    ),
    (prompt_step(">handoff"), prompt_step(">resume"), prompt_step(">trim")),
)
"""The scenarios for every damaged session."""

HOME_SCENARIOS: Scenario = (
    shell_step("doctor --index update --json"),
    shell_step("sessions --all --limit 0"),
    shell_step("sessions --all --limit 0 --json"),
    shell_step("sessions --json"),
    shell_step("sessions --all --expiring"),
    shell_step("sessions --all --agent codex --json"),
    *(
        shell_step(f"search --all {rest}")
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
    shell_step("stats --all --json"),
    shell_step("stats --all --threshold"),
    shell_step("fsck --all --json"),
    shell_step("scrub --list --all --json"),
    shell_step("archive --all --json"),
    shell_step("archive --list"),
    shell_step("resume parser --json"),
    shell_step("resume", "no such title"),
    shell_step("continue --print"),
    shell_step("info 00000000"),
    shell_step("config"),
    shell_step("config --json"),
    shell_step("restore --list"),
    shell_step("rehome --dry-run --json /home/user/proj"),
    shell_step("team status"),
    shell_step("nonsense"),
    shell_step("handoff --size 7"),
    shell_step("index"),
)
"""The scenarios for a home with many sessions."""


COMPACTED_SESSION_SCENARIOS: tuple[Scenario, ...] = (
    (shell_step("fork {id} --before-compaction --json"), shell_step("read {id} --turns 1 --json")),
    (prompt_step(">recall"), prompt_step(">resume --table")),
)
"""The scenarios for every compacted session."""


def list_scenarios(session: Session, *, include_all: bool) -> Iterator[Scenario]:
    """Yield the scenarios for an undamaged session: the main scenarios or, with ``include_all``, all of them."""
    yield from MAIN_SCENARIOS
    if b"compact_boundary" in session.content or b'"type":"compacted"' in session.content:
        yield from COMPACTED_SESSION_SCENARIOS
    if not include_all:
        return
    yield from (
        *CHILD_SCENARIOS,
        *CROSS_AGENT_SCENARIOS[session.agent],
        *READING_SCENARIOS,
        *TYPED_PROMPT_SCENARIOS,
    )
    yield from (*CLEAR_SCENARIOS, *MODULE_SCENARIOS) if session.agent == CLAUDE else CODEX_SCENARIOS
