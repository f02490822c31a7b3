"""Documents of any session, on as many cases as a target of the core."""

from __future__ import annotations

import pytest

from tests.fuzz.targets.target import Target
from tests.fuzz.test_targets import test_nothing_gets_in
from tests.parts.share.fuzz import TARGETS

__all__ = ["target", "test_nothing_gets_in"]


@pytest.fixture(params=TARGETS, ids=lambda target: target.name.replace(" ", "-"))
def target(request: pytest.FixtureRequest) -> Target:
    """A target of this part."""
    assert isinstance(request.param, Target)
    return request.param
