"""Ten real clients at once over one home: each gets a child and a number of its own, no link is lost."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resume_hooks.paths import Where
from resume_hooks.sessions.link_log import read_links
from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.printing import PrintResult
from tests.e2e.plugin import ENGINE, children, plugin_at, spoken

PARENT = "11111111-aaaa-4bbb-8ccc-000000000010"
CLIENTS = 10


@pytest.mark.wide
def test_ten_clients_hand_off_at_once(client: ClientVersion, home: ClientHome, api: MockApi, tmp_path: Path) -> None:
    """No request is sent, and each child holds its own next step; one of them is resumed."""
    plugin = plugin_at(tmp_path / "plugin")
    done = run_print(client, home, api, "remember the number", extra_args=["--session-id", PARENT])
    assert done.returncode == 0, done.stderr
    parent = home.project_folder / f"{PARENT}.jsonl"
    before = parent.read_bytes()
    api.clear()

    def hand_off(number: int) -> PrintResult:
        step = f">handoff step number {number} of ten"
        return run_print(client, home, api, step, resume=PARENT, plugin_dir=plugin, extra_env=ENGINE, timeout=120)

    with ThreadPoolExecutor(CLIENTS) as pool:
        results = list(pool.map(hand_off, range(CLIENTS)))
    assert [result.returncode for result in results] == [0] * CLIENTS
    assert not api.main_requests()
    assert parent.read_bytes().startswith(before)
    made = children(home, parent)
    assert len(made) == CLIENTS
    assert {_title(path) for path in made} == {f"step number {n} of ten · handoff" for n in range(CLIENTS)}
    steps = [number for number in range(CLIENTS) for path in made if f"step number {number} of" in path.read_text()]
    assert steps == list(range(CLIENTS))
    environ = {"CLAUDE_CONFIG_DIR": str(home.config), "HOME": str(home.root)}
    links = [link.child_id for link in read_links(Where(environ)) if link.kind == "handoff"]
    assert sorted(links) == sorted(path.stem for path in made)
    done = run_print(client, home, api, "go on", resume=made[0].stem, plugin_dir=plugin, extra_env=ENGINE)
    assert done.returncode == 0, done.stderr
    assert PARENT in spoken(api.main_requests()[-1])


def _title(path: Path) -> str:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return str(next(row["customTitle"] for row in rows if row.get("type") == "custom-title"))
