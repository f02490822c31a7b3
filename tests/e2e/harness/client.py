"""Re-export the names that tests import from the harness."""

from __future__ import annotations

from tests.e2e.harness.home import ClientHome
from tests.e2e.harness.printing import PrintResult, run_print
from tests.e2e.harness.terminal import Terminal
from tests.e2e.harness.tmux import TmuxTui
from tests.e2e.harness.tui import Tui
from tests.e2e.harness.versions import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    PREVIOUS_VERSION,
    RECENT_VERSIONS,
    VERSIONS,
    ClientVersion,
    clients_folder,
    find_client,
)

__all__ = [
    "NEWEST_VERSION",
    "OLDEST_VERSION",
    "PREVIOUS_VERSION",
    "RECENT_VERSIONS",
    "VERSIONS",
    "ClientHome",
    "ClientVersion",
    "PrintResult",
    "Terminal",
    "TmuxTui",
    "Tui",
    "clients_folder",
    "find_client",
    "run_print",
]
