"""The commands of a mark inside the client."""

from __future__ import annotations

from pathlib import Path

from tests.hooks.conftest import children
from tests.hooks.test_client_module import ask, parent

__all__ = ["parent"]


def test_a_mark_and_the_way_back(parent: Path) -> None:
    """The mark is reported in a text; the way back opens the child."""
    assert ask("mark", "try it")["text"].startswith("mark set")
    assert "Type it after the command" in ask("back")["text"]
    back = ask("back", "it does not work")
    (child,) = children(parent)
    assert (back["open"], back["fill"]) == (child.stem, "")
