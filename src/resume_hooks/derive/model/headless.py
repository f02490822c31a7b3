"""Which client's model is asked: that of the session's own agent where its program is here, else of one that is.

Each client has a function that makes its model of ``where`` and a name; those of parts stand in the table of agents.
"""

from __future__ import annotations

from collections.abc import Callable

from resume_hooks.derive.model import claude_headless
from resume_hooks.derive.model.port import HeadlessModel
from resume_hooks.paths import Where
from resume_hooks.seam import function_of
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.session_files import SessionFile


def model_for(session: SessionFile, where: Where, name: str = "") -> HeadlessModel:
    """The model for a session; ``name`` is what its client calls it, "" for the one of the settings.

    Where no client is here the model of the session's own agent, which says so once it is asked.
    """
    others = [known for known in registry.OTHERS if known.model]
    makers: dict[str, Callable[[Where, str], HeadlessModel]] = {NAME: claude_headless.model}
    makers |= {each.name: function_of(each.part, each.model) for each in others}
    found = [makers[agent](where, name) for agent in sorted(makers, key=lambda agent: agent != session.agent)]
    return next((one for one in found if one.is_here), found[0])
