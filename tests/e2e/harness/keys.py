"""Translate the names of keys into the bytes that a terminal sends.

The names are tmux's, so that tests can use the same names for both kinds of terminal.
"""

from __future__ import annotations

PASTE_START, PASTE_END = b"\x1b[200~", b"\x1b[201~"
KEY_ALIASES = {"Esc": "Escape", "Backspace": "BSpace", "Delete": "DC"}

_BYTES_OF_NAMED_KEYS = {
    "Enter": b"\r",
    "Escape": b"\x1b",
    "Tab": b"\t",
    "BTab": b"\x1b[Z",
    "Space": b" ",
    "BSpace": b"\x7f",
    "DC": b"\x1b[3~",
    "Up": b"\x1b[A",
    "Down": b"\x1b[B",
    "Right": b"\x1b[C",
    "Left": b"\x1b[D",
    "Home": b"\x1b[H",
    "End": b"\x1b[F",
}
_CONTROL_MASK = 0x1F


def bytes_of_key(name: str) -> bytes:
    """Return the bytes that a terminal sends for a key.

    ``name`` is a key of ``_BYTES_OF_NAMED_KEYS``, ``C-`` and a letter, ``M-`` and a character, or a
    character.

    Raises KeyError if ``name`` has none of these forms.
    """
    name = KEY_ALIASES.get(name, name)
    prefix, _, rest = name.partition("-")
    if prefix == "C" and len(rest) == 1:
        return bytes([ord(rest.upper()) & _CONTROL_MASK])
    if prefix == "M" and len(rest) == 1:
        return b"\x1b" + rest.encode()
    return name.encode() if len(name) == 1 else _BYTES_OF_NAMED_KEYS[name]
