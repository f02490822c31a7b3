"""A value with additional fields for a class in ``schema``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ValueWithFields(NamedTuple):
    """One of our values, with documented fields that the value itself does not have."""

    value: object
    fields: Mapping[str, object]
