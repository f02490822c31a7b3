"""Tests of the edition without prompt hooks in the real client. ``make release`` builds this edition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi, last_user_text
from tests.e2e.harness.processes import wait_until
from tests.e2e.installed import code_block_of_page, run_shell_lines_in_clone
from tests.e2e.plugin import ENGINE_ENV, children_of_session, wait_for_child
from tests.e2e.test_inside import open_real_session
from tests.e2e.test_plugin import run_client_command
from tests.e2e.test_skills import bash_call, denied_calls, tool_results
from tests.e2e.test_surface import open_list_at_session
from tests.test_release import MAX_BYTES, MAX_FILES, files_below
from tools import release


@pytest.fixture
def edition(tmp_path: Path) -> Path:
    """Build the edition and return its folder."""
    release.assemble_edition(tmp_path / "edition")
    return tmp_path / "edition"


def test_the_command_in_the_readme_installs_the_edition(
    client: ClientVersion, home: ClientHome, api: MockApi, edition: Path
) -> None:
    """The command in the edition's README installs it.

    The edition passes the client's strict validation, and its installed copy is within the limits
    for size and number of files. ``>handoff`` is sent to the model as an ordinary prompt.
    """
    assert "Validation passed" in run_client_command(
        client, home, api, "plugin", "validate", "--strict", "--profile", "directory", str(edition)
    )
    line = code_block_of_page("tools/edition.md", "claude plugin install")
    run_shell_lines_in_clone(line, edition, "claude", client.command, home.env(api.client_env()))
    copied = files_below(home.config / "plugins" / "cache")
    assert 0 < len(copied) <= MAX_FILES
    assert sum(path.stat().st_size for path in copied) <= MAX_BYTES
    run_print(client, home, api, ">handoff fix the tests", extra_env=ENGINE_ENV)
    assert last_user_text(api.main_requests()[-1]).endswith(">handoff fix the tests")
    (session,) = home.sessions()
    assert children_of_session(home, session) == []


def test_the_commands_of_the_edition_answer(tui: Tui, edition: Path, parent: Path) -> None:
    """In the edition, ``/trim`` asks its question, ``/search`` lists hits, and ``/handoff`` opens a child.

    The next step is in the child's input box. If the model wants to search, the user must permit
    it. ``claude -p`` refuses the model's search.
    """
    open_real_session(tui, edition)
    tui.submit("/trim")
    tui.wait_for("2. Trim here, in place")
    tui.wait_until_idle(2)
    tui.key("Escape")
    tui.wait_until_gone("2. Trim here, in place")
    tui.wait_until_idle()
    open_list_at_session(tui, "/search", "hook_registry", "We should add the agent")
    tui.key("Escape")
    tui.wait_until_gone("newest first")
    tui.submit("/handoff fix the flaky test")
    tui.wait_for("Handed off from")
    tui.wait_until_idle()
    assert tui.input_text() == "fix the flaky test"
    assert wait_for_child(tui.home, parent).is_file()
    command = f'"{edition}/hooks/engine" search --session {parent.stem} the'
    tui.api.script = [bash_call(command), "done"]
    tui.key("Enter")
    tui.wait_for("This command requires approval")
    tui.wait_for("3. No")
    tui.wait_until_idle()
    tui.key("1")
    assert wait_until(lambda: len(tui.api.main_requests()) > 1)
    tui.wait_until_idle()
    assert tool_results(tui.api.main_requests())[-1].startswith("resume-hooks search")
    tui.api.script = [bash_call(command), "done"]
    done = run_print(
        tui.version, tui.home, tui.api, "and now?", plugin_dir=edition, extra_env=ENGINE_ENV
    )
    assert [denial["tool_name"] for denial in denied_calls(done.events)] == ["Bash"]
