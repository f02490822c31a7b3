"""Tests of random sequences of actions.

Each typed turn is counted once, and an untrim restores all contents.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from resume_hooks.derive import untrim
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.outline import make_outline
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from resume_hooks.sessions.locate import session_file
from tests.e2e.harness.client import NEWEST_VERSION, ClientHome, Tui, find_client, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import build_plugin, path_of_open_session
from tests.e2e.test_cost_card import USAGE_BELOW_LIMIT
from tests.e2e.test_in_place import assert_request_is_valid, request_contents
from tests.e2e.test_inside import ASK_FIRST_OPTIONS, QUIET_ENV
from tests.needs import one_in

POSSIBLE_STEPS = (
    "run turn",
    "compact",
    "trim here",
    "trim",
    "rewind",
    "untrim",
    "handoff",
    "resume",
)
STEP_COUNT_PER_SEQUENCE = 6
PROMPT_COUNT_BEFORE_SEQUENCE = 3
"""Number of prompts before each sequence. They are needed because a trim skips the newest turns."""

SEEDS = (3, *range(3), *range(4, 10))
"""Seeds of the sequences. With the first seed, the sequence untrims, rewinds, compacts and trims
twice."""

PLACEHOLDER_BEGINNING = "suppressed - "


def steps_of_seed(seed: int) -> list[str]:
    """Return a random sequence that contains a trim and never repeats the same step immediately."""
    chance = random.Random(seed)
    steps = ["run turn"]
    while len(steps) < STEP_COUNT_PER_SEQUENCE:
        steps.append(chance.choice([step for step in POSSIBLE_STEPS if step != steps[-1]]))
    if not {"trim", "trim here"} & set(steps):
        steps[chance.randrange(2, len(steps))] = chance.choice(["trim", "trim here"])
    return steps


class PlayedSession:
    """A session that plays the steps of a sequence in a client and records the typed prompts."""

    def __init__(self, home: ClientHome, api: MockApi, plugin: Path) -> None:
        self.home, self.api, self.plugin = home, api, plugin
        self.typed: list[str] = []
        api.usage = USAGE_BELOW_LIMIT
        self.tui = self.start_client()

    def start_client(self, resume: str | None = None) -> Tui:
        """Start a client and return it. ``resume`` is the id of the session to resume."""
        tui = Tui(find_client(NEWEST_VERSION), self.home, self.api, columns=120, rows=200)
        tui.start(
            (*ASK_FIRST_OPTIONS, "--allowed-tools", "Bash(seq:*)"),
            plugin_dir=self.plugin,
            extra_env=QUIET_ENV,
            resume=resume,
        )
        return tui

    @property
    def session(self) -> Path:
        """The file of the open session."""
        return path_of_open_session(self.tui)

    def play(self, step: str) -> None:
        """Perform a step and wait until the screen no longer changes."""
        getattr(self, step.replace(" ", "_"))()
        self.tui.wait_until_idle()

    def run_command(self, command: str, *answer_patterns: str) -> None:
        """Type a command, and wait until its answer appears.

        The answer appears when the number of matches of ``answer_patterns`` on the screen changes.
        """
        pattern = re.compile("|".join(answer_patterns))
        before = len(pattern.findall(self.tui.text()))
        self.tui.submit(command)
        wait_until(lambda: len(pattern.findall(self.tui.text())) != before)
        self.tui.wait_until_idle()

    def run_turn(self) -> None:
        """Run a turn with a call whose output is long enough to be trimmed."""
        number = len(self.typed) + 1
        self.api.script = [
            {"name": "Bash", "input": {"command": f"seq {number}0000 {number}3500"}}, f"Step {number} is done.",
        ]  # fmt: skip
        self.typed.append(f"take step {number}")
        self.run_command(self.typed[-1], f"Step {number} is done")

    def compact(self) -> None:
        """Compact the session with the client's own command."""
        self.api.script = [f"<summary>So far {len(self.typed)} steps.</summary>"]
        self.run_command("/compact", "Compacted", "Not enough messages")
        self.api.script = []

    def trim_here(self) -> None:
        """Trim in place, or wait until the client shows why the trim is refused."""
        self.run_command("/trim here", "tokens before, about", "othing")

    def trim(self) -> None:
        """Trim the session and open the copy, or wait until the client shows why the trim is refused."""
        self.run_command("/trim", "1. Open the trimmed copy", "othing")
        if "1. Open the trimmed copy" in self.tui.text():
            self.tui.wait_until_idle(2)  # The dialog ignores keys that are pressed too early.
            self.tui.key("Enter")
            self.tui.wait_until_gone("1. Open the trimmed copy")

    def rewind(self) -> None:
        """Rewind to the last prompt with the client's own command. Do nothing if there is no prompt."""
        self.run_command("/rewind", "Restore the code", "othing to rewind")
        if "(current)" not in self.tui.text():
            return
        self.tui.key("Up")
        self.tui.wait_until_idle()
        self.tui.key("Enter")
        self.tui.wait_for("1. Restore conversation")
        self.tui.wait_until_idle()
        self.tui.key("Enter")
        self.tui.wait_until_gone("Restore to the point")
        self.tui.wait_until_idle()
        self.tui.key("C-u")

    def untrim(self) -> None:
        """Untrim the session and open the copy, or wait until the client says that nothing is trimmed."""
        self.run_command("/untrim", "This is the new session", "Nothing in this session is trimmed")

    def handoff(self) -> None:
        """Hand off the session and open the child."""
        self.run_command("/handoff go on", "Handed off from", "othing")
        self.tui.key("C-u")

    def resume(self) -> None:
        """End the client, and resume the session in a new client."""
        session = self.session
        self.tui.close()
        self.tui = self.start_client(session.stem)


@pytest.mark.parametrize("seed", one_in(len(SEEDS), SEEDS))
def test_each_typed_turn_counts_once_after_any_steps(
    home: ClientHome, api: MockApi, tmp_path: Path, seed: int
) -> None:
    """After any sequence of actions, each typed turn is counted at most once.

    The test checks the outline, the search and the digest of every session that the sequence made.
    Each typed turn is in at least one of the outlines. After an untrim of the last session, the
    request contains no placeholder.
    """
    steps = steps_of_seed(seed)
    played = PlayedSession(home, api, build_plugin(tmp_path / "plugin"))
    for step in ["run turn"] * PROMPT_COUNT_BEFORE_SEQUENCE + steps:
        played.play(step)
    session, typed = played.session, played.typed
    played.tui.close()
    where = home.where
    sessions = [session_file(str(path)) for path in home.sessions()]
    outlines = [Counter(turn.first_words for turn in make_outline(one).turns) for one in sessions]
    assert all(max((each[text] for text in typed), default=0) <= 1 for each in outlines), steps
    assert all(any(text in each for each in outlines) for text in typed), steps
    for text in typed:
        hits = search_index([f'"{text}"'], Scope(role="user"), where, max_hits=50).hits
        assert len(hits) == 1, (steps, text)
    for one in sessions:
        for name, entries in build_digest(one, where).sections.items():
            quoted = Counter(entry.text for entry in entries)
            assert all(quoted[text] <= 1 for text in typed), (steps, one.path, name)
    decided = untrim.plan_untrim(scan_trimmed_session(session_file(str(session))), where)
    whole = session.stem if decided.is_child_unneeded else write_child(decided, where).session_id
    api.clear_requests()
    done = run_print(find_client(NEWEST_VERSION), home, api, "now go on", resume=whole)
    assert done.returncode == 0, done.stderr
    (request,) = api.main_requests()
    assert_request_is_valid(request)
    assert not [row for row in request_contents(request) if PLACEHOLDER_BEGINNING in str(row[2])], (
        steps
    )
