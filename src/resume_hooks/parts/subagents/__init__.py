"""Sub-agents that go on: `handoff` and `fork` take `<session>/agent-<id>`."""

from __future__ import annotations

from resume_hooks.part import Answer, Part

PART = Part(answers=(Answer("a sub-agent as a session", "as_session:held"),))
