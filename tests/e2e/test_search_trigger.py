"""Tests that ``>search`` in the real client shows the best hits without a request.

The trigger works with ``-p`` and on the screen.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from resume_hooks.search.index.database import index_file_path, open_index_read_only
from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import ENGINE_ENV, PARENT_ID
from tests.needs import one_in

SEARCHED_WORDS = "cursor agent support interface"


def test_print_mode_shows_hits_and_asks_no_model(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path, parent: Path
) -> None:
    """``claude -p '>search words'`` shows hits from another session and sends no request."""
    raw = parent.read_bytes()
    shown = run_print(
        client, home, api, f">search {SEARCHED_WORDS}", plugin_dir=plugin, extra_env=ENGINE_ENV
    )
    assert f"/resume {PARENT_ID}" in shown.text
    assert not api.main_requests()
    assert parent.read_bytes() == raw


@pytest.mark.parametrize("command_prefix", one_in(2, [">", "/resume-hooks:"]))
def test_a_search_in_the_client_shows_indexed_hits(
    tui: Tui, plugin: Path, parent: Path, command_prefix: str
) -> None:
    """When a client starts, a background hook indexes new sessions and shows no message.

    ``>search`` and ``/resume-hooks:search`` show the hits, or say that there are none. The session
    then continues.
    """
    # The session is old, so its last line is complete.
    os.utime(parent, (time.time() - 3_600,) * 2)
    tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV)
    where = tui.home.where
    assert wait_until(Path(where.state, "pending", "indexed.json").exists)
    with open_index_read_only(index_file_path(where)) as db:
        (read, size) = db.execute(
            "SELECT end, size FROM files WHERE session=?", (PARENT_ID,)
        ).fetchone()
    assert read == size == parent.stat().st_size
    assert "index" not in "\n".join(tui.screen())
    tui.submit(f"{command_prefix}search {SEARCHED_WORDS}")
    tui.wait_for(f"/resume {PARENT_ID}")
    tui.wait_for("opens a session")
    tui.wait_until_idle()
    if command_prefix == ">":
        tui.clear_restored_prompt()
    tui.submit(f"{command_prefix}search xyzzyplugh")
    tui.wait_for("nothing found")
    assert not tui.api.main_requests()
