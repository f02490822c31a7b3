"""``resume`` of what lies elsewhere, on a terminal."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler

from tests.builders import conversation, custom_title, session_bytes
from tests.cli.desk import Desk
from tests.web import Web, body


def test_an_address_is_asked_about_and_imported(desk: Desk) -> None:
    """It becomes a session of this folder, and the client starts on that; without a yes nothing is fetched."""
    content = session_bytes([*conversation(2), custom_title("From afar")])
    asked: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        body(content)(handler)

    known = desk.ids()
    with Web({"/x.jsonl": answer}) as web:
        words = ("resume", web.at("/x.jsonl"), "--allow-private", "--way", "as-is")
        screen = desk.run(*words)
        screen.wait_for(r"Y/n")
        screen.type("n\r")
        assert (screen.ended(), asked, desk.ids()) == (130, [], known)
        screen = desk.run(*words)
        screen.wait_for(r"Y/n")
        screen.type("\r")
        screen.wait_for(r"STARTED --resume \S+ IN proj")
        assert screen.ended() == 0
    (made,) = desk.ids() - known
    assert f"STARTED --resume {made}".encode() in screen.raw
    assert b"not verified" in screen.raw
