"""A value of ours as an answer: what a form of ``schema`` reads beside what the value has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class With(NamedTuple):
    """A value of ours, and documented fields that it does not have itself."""

    value: object
    fields: Mapping[str, object]
