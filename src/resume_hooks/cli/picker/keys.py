"""What each key of the chooser does. Letters go to the words that are searched."""

from __future__ import annotations

from typing import Protocol

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

PAGE = 10
"""Lines that a page key moves by."""

FAR = 10**9


class Chosen(Protocol):
    """What keys ask of the chooser."""

    @property
    def nothing_typed(self) -> bool:
        """Whether no words are typed."""

    def move(self, by: int) -> None:
        """Choose a session farther down, or up."""

    def take(self) -> None:
        """Leave with the session that is chosen."""

    def leave(self) -> None:
        """Leave without one."""

    def turn(self) -> None:
        """Show the next kind of preview."""

    def widen(self) -> None:
        """List all projects, or this one alone."""

    def copy(self) -> None:
        """Copy the command of the session that is chosen."""

    def explain(self) -> None:
        """Show all keys, or hide them."""


def bindings(chooser: Chosen) -> KeyBindings:
    """The keys."""
    keys = KeyBindings()
    moves = {
        "up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -PAGE, "pagedown": PAGE, "home": -FAR, "end": FAR
    }  # fmt: skip
    for name, by in moves.items():
        _bind_move(keys, name, by, chooser)

    @keys.add("enter")
    def _(_event: KeyPressEvent) -> None:
        chooser.take()

    # Eager, since alone it would be waited for what could follow it; sequences that begin with it are no Escape here.
    @keys.add("escape", eager=True)
    @keys.add("c-c")
    @keys.add("c-d", filter=Condition(lambda: chooser.nothing_typed))
    @keys.add("<sigint>")
    def _(_event: KeyPressEvent) -> None:
        chooser.leave()

    @keys.add("tab")
    def _(_event: KeyPressEvent) -> None:
        chooser.turn()

    @keys.add("c-a")
    def _(_event: KeyPressEvent) -> None:
        chooser.widen()

    @keys.add("c-y")
    def _(_event: KeyPressEvent) -> None:
        chooser.copy()

    @keys.add("?", filter=Condition(lambda: chooser.nothing_typed))
    @keys.add("f1")
    def _(_event: KeyPressEvent) -> None:
        chooser.explain()

    return keys


def _bind_move(keys: KeyBindings, name: str, by: int, chooser: Chosen) -> None:
    @keys.add(name)
    def _(_event: KeyPressEvent) -> None:
        chooser.move(by)
