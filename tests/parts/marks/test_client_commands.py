"""Tests of the commands ``/mark`` and ``/back`` inside the client."""

from __future__ import annotations

from pathlib import Path

from tests.hooks.conftest import list_children
from tests.hooks.test_client_module import ask_engine, parent

__all__ = ["parent"]


def test_the_client_commands_mark_and_back(parent: Path) -> None:
    """``/mark`` replies with a text, and ``/back`` opens a child."""
    assert ask_engine("mark", "try it")["text"].startswith("mark set")
    assert "Type it after the command" in ask_engine("back")["text"]
    back = ask_engine("back", "it does not work")
    (child,) = list_children(parent)
    assert (back["open"], back["fill"]) == (child.stem, "")
