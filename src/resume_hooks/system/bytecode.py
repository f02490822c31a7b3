"""Repair compiled modules (``.pyc`` files) that were cut off because the disk was full.

Python 3.11 and older, and the first releases of 3.12 and 3.13, keep such a file (CPython issue
126606). Each import of the module then fails, even after there is free space again.

This module is small enough that its own ``.pyc`` file fits into one block of a disk, which is
written completely or not at all. It needs only the standard library and Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import SourceLoader
    from types import CodeType

_original_get_code = SourceFileLoader.get_code


def repair_bytecode_on_import() -> None:
    """Make imports delete a damaged ``.pyc`` file and load the module from its source instead."""
    SourceFileLoader.get_code = _get_code_or_repair_bytecode  # type: ignore[assignment, method-assign]  # typeshed knows two SourceLoaders


def _get_code_or_repair_bytecode(loader: SourceLoader, name: str) -> CodeType | None:
    try:
        return _original_get_code(loader, name)
    except (EOFError, ValueError, TypeError):
        # These errors mean that the ``.pyc`` file is damaged. Only then is the import needed.
        from importlib.util import cache_from_source

        path = loader.get_filename(name)
        with contextlib.suppress(OSError):
            os.unlink(cache_from_source(path))
        return loader.source_to_code(loader.get_data(path), path)
