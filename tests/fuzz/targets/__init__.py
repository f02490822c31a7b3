"""The fuzz targets of the core, each with its share of the cases in CI."""

from __future__ import annotations

from tests.fuzz.targets import hooks, kept, sessions, state, texts
from tests.fuzz.targets.target import Target

TARGETS: tuple[Target, ...] = (
    *texts.TARGETS,
    *sessions.TARGETS,
    *state.TARGETS,
    *kept.TARGETS,
    *hooks.TARGETS,
)
