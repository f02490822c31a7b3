"""What a scrub takes out begins and ends at characters, as everywhere else."""

from __future__ import annotations

import pytest

from resume_hooks.parts.secrets.cleaner import Cleaner
from tests.redaction.test_neighbours import (
    Clean,
    in_line,
    test_any_neighbours,
    test_every_rule_leaves_its_neighbours,
)

__all__ = ["test_any_neighbours", "test_every_rule_leaves_its_neighbours"]


@pytest.fixture(scope="module")
def ways() -> list[Clean]:
    """Of lines with and without escapes, and of texts."""
    return [
        lambda text: in_line(text, lambda line: Cleaner().line(line).raw, ascii_only=True),
        lambda text: in_line(text, lambda line: Cleaner().line(line).raw, ascii_only=False),
        lambda text: Cleaner().text(text.encode()).raw.decode(),
    ]
