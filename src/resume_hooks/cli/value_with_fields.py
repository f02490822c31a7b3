"""A value together with fields that the JSON output adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ValueWithFields(NamedTuple):
    """A value, and additional fields for the JSON output. The schema documents these fields too."""

    value: object
    fields: Mapping[str, object]
