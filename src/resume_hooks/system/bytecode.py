"""Repair compiled modules (``.pyc``) that a full disk cut off when Python wrote them.

Python 3.11 and older, and the first releases of 3.12 and 3.13, keep such a file (their gh-126606).
Each import of the module then fails, also after there is space again.

This module stays so small that its own compiled form fits into one block of a disk, which is written
whole or not at all. Standard library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import SourceLoader
    from types import CodeType

_get_code = SourceFileLoader.get_code


def repair_bytecode_on_import() -> None:
    """From now on, load a module whose compiled form is damaged from its source, and delete that form."""
    SourceFileLoader.get_code = _get_code_or_repair  # type: ignore[assignment, method-assign]  # typeshed knows two SourceLoaders


def _get_code_or_repair(loader: SourceLoader, name: str) -> CodeType | None:
    try:
        return _get_code(loader, name)
    except (EOFError, ValueError, TypeError):  # the errors of marshal
        from importlib.util import cache_from_source  # only a damaged file needs this import

        path = loader.get_filename(name)
        with contextlib.suppress(OSError):
            os.unlink(cache_from_source(path))
        return loader.source_to_code(loader.get_data(path), path)
