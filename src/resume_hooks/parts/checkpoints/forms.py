"""The forms of checkpoint and rewind."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Had, ReceiptForm, Strict
from resume_hooks.parts.checkpoints.checkpoint import Mark
from resume_hooks.parts.checkpoints.rewind import RewindPlan

marked = Had[Mark]()
rewound = Had[RewindPlan]()


class CheckpointRow(Strict):
    """A mark in a session."""

    uuid: str = Field(description="the last record before it")
    reference: str = marked(lambda mark: f"{mark.session_id}:{mark.record}", "that record as session and 0-based line")
    goal: str
    started_at: str


class CheckpointForm(Strict):
    """The checkpoint of a session: set, shown, or forgotten."""

    session_id: str
    file: str
    written: bool = Field(description="a mark was set or forgotten")
    active: bool
    checkpoint: CheckpointRow | None = Field(description="the one that this is about; null where there is none")
    replaced: CheckpointRow | None


class RewindFacts(Strict):
    """What a rewind goes back to, and what it leaves out."""

    checkpoint: str = rewound(lambda to: f"{to.mark.session_id}:{to.mark.record}", "reference: session and record")
    goal: str = rewound(lambda to: to.mark.goal)
    started_at: str = rewound(lambda to: to.mark.started_at)
    left: str | None = rewound(lambda to: to.mark.left or None, "of a fork: the session that it left there")
    resolved: bool = rewound(lambda to: not to.lost, "false: the child starts at the root")
    report_characters: int = rewound(lambda to: len(to.report))
    first_left_out: str | None = rewound(
        lambda to: f"{to.left_out.names.full}:{to.left_out.first}" if to.left_out else None,
        "reference; null where nothing followed the checkpoint",
    )
    last_left_out: str | None = rewound(
        lambda to: f"{to.left_out.names.full}:{to.left_out.last}" if to.left_out else None
    )


class RewindForm(ReceiptForm):
    """The receipt of a rewind."""

    rewind: RewindFacts
