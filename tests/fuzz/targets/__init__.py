"""The targets of the core, one function each: what to try on one case, and how many cases of it CI tries."""

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
