"""``resume`` of what lies elsewhere, on a terminal."""

from __future__ import annotations

from pathlib import Path

from tests.builders import conversation, custom_title, session_bytes
from tests.cli.desk import Desk


def test_a_page_is_asked_about_and_imported(desk: Desk, tmp_path: Path) -> None:
    """It becomes a session of this folder, and the client starts on that; without a yes nothing is made."""
    page = tmp_path / "far.html"
    page.write_bytes(session_bytes([*conversation(2), custom_title("From afar")]))
    known = desk.ids()
    words = ("resume", str(page), "--way", "as-is")
    screen = desk.run(*words)
    screen.wait_for(r"Y/n")
    screen.type("n\r")
    assert (screen.ended(), desk.ids()) == (130, known)
    screen = desk.run(*words)
    screen.wait_for(r"Y/n")
    screen.type("\r")
    screen.wait_for(r"STARTED --resume \S+ IN proj")
    assert screen.ended() == 0
    (made,) = desk.ids() - known
    assert f"STARTED --resume {made}".encode() in screen.raw
    assert b"not verified" in screen.raw
