"""Actions on a session in any order count each typed turn once.

An untrim restores all trimmed contents.
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
from tests.e2e.harness.client import NEWEST, ClientHome, Tui, find_client, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import build_plugin, open_session_path
from tests.e2e.test_cost_card import BELOW
from tests.e2e.test_in_place import assert_request_is_valid, request_contents
from tests.e2e.test_inside import ASK_FIRST, QUIET
from tests.needs import one_in

STEPS = ("prompt", "compact", "trim here", "trim", "rewind", "untrim", "handoff", "resume")
LONGEST = 6
BEFORE = 3
"""Steps of a sequence, and prompts before it: a trim leaves the newest turns alone."""

SEEDS = (3, *range(3), *range(4, 10))
"""Of the sequences that are tried; the first one undoes, rewinds, compacts and trims twice."""

SUPPRESSED = "suppressed - "


def steps_of_seed(seed: int) -> list[str]:
    """Return a sequence with at least one trim, and no two steps of a kind in a row."""
    chance = random.Random(seed)
    steps = ["prompt"]
    while len(steps) < LONGEST:
        steps.append(chance.choice([step for step in STEPS if step != steps[-1]]))
    if not {"trim", "trim here"} & set(steps):
        steps[chance.randrange(2, len(steps))] = chance.choice(["trim", "trim here"])
    return steps


class PlayedSession:
    """A session that is played step by step at the client, with the prompts that were typed."""

    def __init__(self, home: ClientHome, api: MockApi, plugin: Path) -> None:
        self.home, self.api, self.plugin = home, api, plugin
        self.typed: list[str] = []
        api.usage = BELOW
        self.tui = self.start_client()

    def start_client(self, resume: str | None = None) -> Tui:
        """Return a client, on a session if one is named."""
        tui = Tui(find_client(NEWEST), self.home, self.api, columns=120, rows=200)
        tui.start(
            (*ASK_FIRST, "--allowed-tools", "Bash(seq:*)"),
            plugin_dir=self.plugin,
            extra_env=QUIET,
            resume=resume,
        )
        return tui

    @property
    def session(self) -> Path:
        """The open session."""
        return open_session_path(self.tui)

    def play(self, step: str) -> None:
        """Do a step, to its end."""
        getattr(self, step.replace(" ", "_"))()
        self.tui.wait_idle()

    def ask(self, typed: str, *answers: str) -> None:
        """Type a command, and wait until one of its answers is there that did not before."""
        pattern = re.compile("|".join(answers))
        before = len(pattern.findall(self.tui.text()))
        self.tui.submit(typed)
        wait_until(lambda: len(pattern.findall(self.tui.text())) != before)
        self.tui.wait_idle()

    def prompt(self) -> None:
        """Run a turn with a call whose output is worth a trim."""
        number = len(self.typed) + 1
        self.api.script = [
            {"name": "Bash", "input": {"command": f"seq {number}0000 {number}3500"}}, f"Step {number} is done.",
        ]  # fmt: skip
        self.typed.append(f"take step {number}")
        self.ask(self.typed[-1], f"Step {number} is done")

    def compact(self) -> None:
        """Compact the session by the client's own command, with a summary."""
        self.api.script = [f"<summary>So far {len(self.typed)} steps.</summary>"]
        self.ask("/compact", "Compacted", "Not enough messages")
        self.api.script = []

    def trim_here(self) -> None:
        """Trim in place, or get a reason."""
        self.ask("/trim here", "tokens before, about", "othing")

    def trim(self) -> None:
        """Trim to a copy, which is opened, or get a reason."""
        self.ask("/trim", "1. Open the trimmed copy", "othing")
        if "1. Open the trimmed copy" in self.tui.text():
            self.tui.wait_idle(2)  # a key that comes at once was meant for the box
            self.tui.key("Enter")
            self.tui.wait_gone("1. Open the trimmed copy")

    def rewind(self) -> None:
        """Rewind to before the last prompt, if there is one, by the client's own command."""
        self.ask("/rewind", "Restore the code", "othing to rewind")
        if "(current)" not in self.tui.text():
            return
        self.tui.key("Up")
        self.tui.wait_idle()
        self.tui.key("Enter")
        self.tui.wait_for("1. Restore conversation")
        self.tui.wait_idle()
        self.tui.key("Enter")
        self.tui.wait_gone("Restore to the point")
        self.tui.wait_idle()
        self.tui.key("C-u")

    def untrim(self) -> None:
        """Restore everything in a copy, or get the message that nothing is trimmed."""
        self.ask("/untrim", "This is the new session", "Nothing in this session is trimmed")

    def handoff(self) -> None:
        """Open a fresh session that knows this one."""
        self.ask("/handoff go on", "Handed off from", "othing")
        self.tui.key("C-u")

    def resume(self) -> None:
        """End the client, and continue in another."""
        session = self.session
        self.tui.close()
        self.tui = self.start_client(session.stem)


@pytest.mark.parametrize("seed", one_in(len(SEEDS), SEEDS))
def test_each_turn_counts_once(home: ClientHome, api: MockApi, tmp_path: Path, seed: int) -> None:
    """Outline, search and digest count it, over all sessions derived from the first.

    An untrim leaves no placeholder.
    """
    steps = steps_of_seed(seed)
    played = PlayedSession(home, api, build_plugin(tmp_path / "plugin"))
    for step in ["prompt"] * BEFORE + steps:
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
    for name, entries in build_digest(session_file(str(session)), where).sections.items():
        said_there = Counter(entry.text for entry in entries)
        assert all(said_there[text] <= 1 for text in typed), (steps, name)
    decided = untrim.plan_untrim(scan_trimmed_session(session_file(str(session))), where)
    whole = session.stem if decided.is_pointless else write_child(decided, where).session_id
    api.clear()
    done = run_print(find_client(NEWEST), home, api, "now go on", resume=whole)
    assert done.returncode == 0, done.stderr
    (request,) = api.main_requests()
    assert_request_is_valid(request)
    assert not [row for row in request_contents(request) if SUPPRESSED in str(row[2])], steps
