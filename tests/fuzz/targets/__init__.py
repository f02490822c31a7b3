"""The fuzz targets of the core, each with its share of the cases in CI."""

from __future__ import annotations

from tests.fuzz.targets import hooks, sessions, state, stored, texts
from tests.fuzz.targets.target import Target

TARGETS: tuple[Target, ...] = (
    *texts.TARGETS,
    *sessions.TARGETS,
    *state.TARGETS,
    *stored.TARGETS,
    *hooks.TARGETS,
)
