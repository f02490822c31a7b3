"""Which client's model is asked: that of the session's own agent where its program is here, else of one that is.

Each client is a module and a row of ``MODELS``.
"""

from __future__ import annotations

import importlib
from typing import cast

from resume_hooks.derive.model.port import HeadlessModel
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_at

MODELS = {
    "claude": "resume_hooks.derive.model.claude_headless",
    "codex": "resume_hooks.parts.codex.model",
}
"""The module of each client; its ``model`` makes one of a name."""


def model_for(path: str, where: Where, name: str = "") -> HeadlessModel:
    """The model for the session at a path; ``name`` is what its client calls it, "" for the one of the settings.

    Where no client is here the model of the session's own agent, which says so once it is asked.
    """
    own = agent_at(path, where).name
    modules = (MODELS[agent] for agent in sorted(MODELS, key=lambda agent: agent != own))
    found = [cast("HeadlessModel", importlib.import_module(module).model(where, name)) for module in modules]
    return next((one for one in found if one.is_here), found[0])
