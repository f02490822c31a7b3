"""The result of copying a text, for those who show it and reach no clipboard. Standard library, Python 3.9."""

from __future__ import annotations

from typing import NamedTuple


class Copied(NamedTuple):
    """What became of a text: ``how`` is copied, sent or not copied; ``via`` names the way, ``""`` for none."""

    how: str
    via: str = ""

    def sentence(self, what: str) -> str:
        """What became of ``what``; the caller shows the text itself, too."""
        if self.how == "not copied":
            return f"{what} not copied"
        if self.how == "copied":
            return f"{what} copied ({self.via})"
        return f"{what} sent to the clipboard"


NOT_COPIED = Copied("not copied")
