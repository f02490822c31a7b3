"""What is broken in a session, and a repaired child of it, whoever wrote the session.

Claude Code's own form is that of the modules beside this one. Every other agent brings ``defects(path, file_of)`` and
``is_loss(kind)``, which says whether a repaired child lacks something for it.
"""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks.derive import agents
from resume_hooks.derive.child.write import ChildPlan
from resume_hooks.errors import NotATranscript, SessionNotFound, UsageError
from resume_hooks.maintenance.fsck import diagnose, repair
from resume_hooks.maintenance.fsck.findings import Defect, DefectReport, report
from resume_hooks.paths import Where
from resume_hooks.seam import function_of
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import OTHERS, agent_of
from resume_hooks.sessions.session_files import SessionFile


class Repair(NamedTuple):
    """A repaired child, what is broken in its parent, and in words what it can't hold."""

    child: ChildPlan
    report: DefectReport
    lost: tuple[str, ...]


def examine(session: SessionFile, where: Where) -> DefectReport:
    """As ``diagnose.examine``."""
    agent = agent_of(session, where)
    if agent.name == NAME:
        return diagnose.examine(session, where)
    path = session.original
    try:
        known = OTHERS.get(agent.name)
        found = list(function_of(known.part, known.defects)(path, agent.file_of)) if known and known.defects else []
    except (NotATranscript, SessionNotFound) as error:
        found = [Defect(diagnose.UNREADABLE, error.message)]
    return report(session.session_id, path, found)


def repaired(session: SessionFile, where: Where, branch: str | None = None) -> Repair:
    """As ``repair.plan``."""
    agent = agent_of(session, where)
    if agent.name == NAME:
        decided = repair.plan(session, where, branch=branch)
        return Repair(decided, decided.report, decided.lost)
    if branch is not None:
        raise UsageError(f"A session of {agent.label} has no other branch", "Leave --branch out.")
    found, known = examine(session, where), OTHERS.get(agent.name)
    is_loss = function_of(known.part, known.is_loss) if known and known.is_loss else lambda _: False
    lost = [one for group in found.groups if is_loss(group.kind) for one in group.findings]
    return Repair(agents.writer_of(session.agent, where).repair(session), found, tuple(map(repair.told, lost)))
