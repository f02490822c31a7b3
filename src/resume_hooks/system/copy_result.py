"""Define the result of a copy, for code that displays it without access to the clipboard.

This module needs only the standard library and Python 3.9.
"""

from __future__ import annotations

from typing import NamedTuple


class CopyResult(NamedTuple):
    """The result of a copy; ``how`` is "copied", "sent" or "not copied".

    ``via`` is the name of the method, or ``""``.
    """

    how: str
    via: str = ""

    def sentence(self, what: str) -> str:
        """Return a sentence that says whether ``what`` was copied.

        The caller also shows the text, in case it was not copied.
        """
        if self.how == "not copied":
            return f"{what} not copied"
        if self.how == "copied":
            return f"{what} copied ({self.via})"
        return f"{what} sent to the clipboard"


NOT_COPIED = CopyResult("not copied")
