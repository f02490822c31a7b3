"""Tests of the commands ``/mark`` and ``/back`` inside the client."""

from __future__ import annotations

from pathlib import Path

from tests.hooks.conftest import list_children
from tests.hooks.test_client_module import ask_engine, parent

__all__ = ["parent"]


def test_the_client_commands_set_a_mark_and_open_a_child(parent: Path) -> None:
    """``/mark`` sets a mark, and ``/back`` with a report opens a child.

    ``/back`` without a report asks the user for one.
    """
    assert ask_engine("mark", "try it")["text"].startswith("mark set")
    assert "Type the report after the command" in ask_engine("back")["text"]
    back = ask_engine("back", "it does not work")
    (child,) = list_children(parent)
    assert (back["open"], back["fill"]) == (child.stem, "")
