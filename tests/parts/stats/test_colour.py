"""The table has colour where it is wanted."""

from __future__ import annotations

from tests.cli.test_output import Told, is_styled, told

__all__ = ["told"]


def test_colour_where_it_is_wanted(told: Told) -> None:
    """On a terminal, and in a pipe that asks for it."""
    is_styled(told, ["stats", "--all"])
