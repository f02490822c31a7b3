"""Tests that the statistics find the real client's records of hooks.

The statistics recognize this plugin's hooks by their command.
"""

from __future__ import annotations

from pathlib import Path

from resume_hooks.parts.stats.cache import gather_counts
from resume_hooks.parts.stats.totals import make_statistics
from resume_hooks.paths import Where
from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import ENGINE_ENV, build_plugin


def test_stats_count_the_hooks_of_a_real_session(
    client: ClientVersion, home: ClientHome, api: MockApi, tmp_path: Path
) -> None:
    """After a turn, the statistics contain one run of the plugin's hook and one of the user's hook.

    They also contain the tokens that the API reported.
    """
    home.write_settings(
        {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sleep 0.2"}]}]}}
    )
    run_print(
        client,
        home,
        api,
        "hello",
        plugin_dir=build_plugin(tmp_path / "plugin"),
        extra_env=ENGINE_ENV,
    )
    found = make_statistics(gather_counts(Where(home.env())).transcripts, "")
    stops = {row.is_own: row for row in found.hooks if row.event == "Stop"}
    assert {whose: row.run_count for whose, row in stops.items()} == {True: 1, False: 1}
    assert stops[False].median_ms >= 200
    assert stops[True].median_ms < 2_000
    assert (found.session_count, found.months[0].turn_count, found.months[0].request_count) == (
        1,
        1,
        1,
    )
    assert found.months[0].sent_tokens == api.usage.input_tokens + api.usage.cache_read_input_tokens
