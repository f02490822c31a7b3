"""The documented forms of ``--json``: one model a verb, exported to docs/schema/.

A verb whose answer does not fit its model is a bug, found before a program reads it.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from resume_hooks.cli.schema.archives import Archive
from resume_hooks.cli.schema.audits import AuditReport
from resume_hooks.cli.schema.checkpoints import Checkpoint, RewindReceipt
from resume_hooks.cli.schema.comparison import Comparison
from resume_hooks.cli.schema.continuing import Continued
from resume_hooks.cli.schema.exports import Export
from resume_hooks.cli.schema.file_history import RewindFiles
from resume_hooks.cli.schema.finding import Index, Search
from resume_hooks.cli.schema.forks import ForkReceipt
from resume_hooks.cli.schema.handoff import Handoff
from resume_hooks.cli.schema.imports import ImportReceipt
from resume_hooks.cli.schema.keeping import Called, Deletion, Restoration
from resume_hooks.cli.schema.lineages import Derived, Info, Lineage, LineageRow, Resolved
from resume_hooks.cli.schema.reading import Read, SessionOutline
from resume_hooks.cli.schema.rollovers import RolloverReceipt
from resume_hooks.cli.schema.scrubs import Scrub
from resume_hooks.cli.schema.sessions import Sessions
from resume_hooks.cli.schema.smart import SmartTrimReceipt
from resume_hooks.cli.schema.stats import Stats
from resume_hooks.cli.schema.upkeep import Completion, Config, Doctor, Fsck, Installation
from resume_hooks.cli.schema.writes import TrimReceipt, UntrimReceipt

DATA: dict[str, type[BaseModel]] = {
    "resume": Comparison,
    "continue": Continued,
    "sessions": Sessions,
    "lineage": Lineage,
    "find-original": LineageRow,
    "find-derived": Derived,
    "resolve": Resolved,
    "info": Info,
    "rollover": RolloverReceipt,
    "handoff": Handoff,
    "trim": TrimReceipt,
    "smart-trim": SmartTrimReceipt,
    "untrim": UntrimReceipt,
    "checkpoint": Checkpoint,
    "rewind": RewindReceipt,
    "rewind-files": RewindFiles,
    "fork": ForkReceipt,
    "export": Export,
    "import": ImportReceipt,
    "rename": Called,
    "tag": Called,
    "delete": Deletion,
    "restore": Restoration,
    "archive": Archive,
    "outline": SessionOutline,
    "read": Read,
    "audit": AuditReport,
    "fsck": Fsck,
    "search": Search,
    "index": Index,
    "scrub": Scrub,
    "stats": Stats,
    "doctor": Doctor,
    "config": Config,
    "completion": Completion,
    "install": Installation,
    "uninstall": Installation,
}


def checked(verb: str, data: dict[str, Any]) -> dict[str, Any]:
    """``data`` as its verb's model has it."""
    found: dict[str, Any] = DATA[verb].model_validate(data).model_dump(mode="json")
    return found
