"""A value with additional fields for a form of ``schema``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class WithFields(NamedTuple):
    """One of our values, and documented fields that it does not have itself."""

    value: object
    fields: Mapping[str, object]
