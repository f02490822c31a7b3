"""Tests that all reports on a session use the same context window.

This is the window of the model that the client is running now.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import SESSION, session_bytes
from tests.e2e.harness.client import NEWEST_VERSION, ClientHome, Tui, find_client
from tests.e2e.harness.mock_api import MockApi, Usage
from tests.e2e.plugin import data_of_verb
from tests.e2e.test_cost_card import OPTIONS_FOR_200K_MODEL
from tests.e2e.test_inside import QUIET_ENV, RUN_ENGINE_STATEMENT, engine_environment
from tests.hooks.test_trim import turns_with_large_files

LARGE_MODEL, SMALL_MODEL = "claude-opus-5-5", OPTIONS_FOR_200K_MODEL[1]
ENV_WITH_LOW_NOTICE_LIMIT = QUIET_ENV | {
    "RESUME_HOOKS_NOTICE_PERCENT": "10",
    "RESUME_HOOKS_COMPACTION": "client",
    "DISABLE_AUTO_COMPACT": "1",
}
ENGINE_SCRIPT_WITHOUT_BAND = (
    "raw = sys.stdin.buffer.read(); b'\"band\"' in raw and sys.exit(1); "
    f"out, into = os.pipe(); os.write(into, raw); os.close(into); os.dup2(out, 0); {RUN_ENGINE_STATEMENT}"
)
"""A fake engine that fails if it is asked for the band, so that the hook prints a line instead."""


@pytest.mark.parametrize(
    ("old_model", "used_tokens", "new_model", "window_tokens", "is_shown_by_hook"),
    [
        # The context is larger than this model's window, so no prompt is sent.
        pytest.param(LARGE_MODEL, 300_000, SMALL_MODEL, 180_000, False, id="smaller"),
        pytest.param(
            SMALL_MODEL, 150_000, LARGE_MODEL, 980_000, False, id="larger", marks=pytest.mark.wide
        ),
        pytest.param(
            LARGE_MODEL,
            150_000,
            SMALL_MODEL,
            180_000,
            True,
            id="smaller-by-the-hook",
            marks=pytest.mark.wide,
        ),
        pytest.param(SMALL_MODEL, 150_000, LARGE_MODEL, 980_000, True, id="larger-by-the-hook"),
    ],
)
def test_all_reports_use_one_context_window(
    home: ClientHome,
    api: MockApi,
    plugin: Path,
    tmp_path: Path,
    old_model: str,
    used_tokens: int,
    new_model: str,
    window_tokens: int,
    is_shown_by_hook: bool,
) -> None:
    """The band, the hook's line, ``/full``, ``>resume``, ``/trim`` and the shell show the same percentage."""
    api.usage = Usage(
        input_tokens=10, cache_read_input_tokens=used_tokens - 10 - Usage().output_tokens
    )
    records = turns_with_large_files()
    for row in records:
        if row["type"] == "assistant":
            row["message"] |= {"model": old_model, "usage": api.usage.as_dict()}
    if old_model == LARGE_MODEL:
        # If resume-hooks writes a child, the child's first record contains the parent's window.
        records[0]["context_window"] = 1_000_000
    home.install_session(session_bytes(records), SESSION, set_cwd=True)
    percent = round(100 * used_tokens / window_tokens)
    share = f"{percent} % of"
    card = (
        rf"{percent} % (?:full \(of {window_tokens:,} tokens\)|of {window_tokens:,})\."
        if used_tokens < window_tokens // 2
        else rf"{share} {window_tokens:,}\."
    )
    with Tui(find_client(NEWEST_VERSION), home, api) as tui:
        env = ENV_WITH_LOW_NOTICE_LIMIT | (
            engine_environment(tmp_path, ENGINE_SCRIPT_WITHOUT_BAND) if is_shown_by_hook else {}
        )
        tui.start(("--model", new_model), plugin_dir=plugin, extra_env=env, resume=SESSION)
        tui.wait_until_idle()
        if not is_shown_by_hook:
            tui.wait_for(rf"{share} {window_tokens:,} ·", 20)
        tui.submit("/full")
        tui.wait_for(card, 20)
        tui.key("Escape")
        tui.wait_until_idle()
        tui.submit("/trim")
        tui.wait_for(rf"{share} {window_tokens:,}\)", 20)
        tui.wait_until_idle(2)  # The dialog ignores keys that are pressed too early.
        tui.key("Escape")
        tui.wait_until_idle()
        tui.submit(">resume")
        tui.wait_for(card, 20)
        if used_tokens < window_tokens:
            tui.submit("go on")
            tui.wait_for("Mock reply 1")
            tui.wait_until_idle()
            assert (
                tui.text().count(f"Stop says: resume-hooks: {share} the context is used")
                == is_shown_by_hook
            )
    context = data_of_verb(home, "info", SESSION)["context"]
    assert (context["window"], f"{context['percent']} % of") == (window_tokens + 20_000, share)
    assert (
        data_of_verb(home, "sessions")["sessions"][0]["context"]["window"] == window_tokens + 20_000
    )
