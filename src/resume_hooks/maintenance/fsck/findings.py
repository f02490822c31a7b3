"""The defects of a session, each with its record and its effect on clients.

The behaviour of clients was measured with 2.1.42, 2.1.112 and 2.1.329. The API's refusals are
documented in the API reference and in docs/transcripts.md. ``error`` means that a client refuses
the session, that the API refuses a message, or that history is lost. ``warning`` means that clients
repair or tolerate the defect, but with a disadvantage. ``note`` means that clients write such
records themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from resume_hooks.transcripts.nodes import Node

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

MAX_LISTED_FINDINGS = 200
"""At most this number of findings of each kind is listed in a document. The document's ``count`` is
the number of all findings of the kind."""


class DefectKind(NamedTuple):
    """A kind of defect.

    ``consequence`` is the effect on clients and the API. ``is_repairable`` means that a repair
    removes defects of this kind.
    """

    code: str
    severity: Severity
    consequence: str
    is_repairable: bool = True

    def defect_in_node(self, node: Node, message: str) -> Defect:
        """Return a defect of this kind in a single record."""
        return Defect(self, message, node.line_number, node.uuid)


class Defect(NamedTuple):
    """One defect of a session.

    ``record_number`` is a line number, counted from 0, or None if the defect does not concern a
    single record.
    """

    kind: DefectKind
    message: str
    record_number: int | None = None
    uuid: str = ""


class DefectGroup(NamedTuple):
    """The defects of one kind, in file order."""

    kind: DefectKind
    defects: tuple[Defect, ...]


class DefectReport(NamedTuple):
    """The defects of one session, grouped by kind."""

    session_id: str
    session_file: str
    groups: tuple[DefectGroup, ...]

    @property
    def has_only_notes(self) -> bool:
        """Whether all defects are notes, which need no attention."""
        return all(group.kind.severity == "note" for group in self.groups)

    def count_findings(self, severity: Severity) -> int:
        """Return the number of defects with this severity."""
        return sum(len(group.defects) for group in self.groups if group.kind.severity == severity)


def group_findings(session_id: str, session_file: str, findings: Iterable[Defect]) -> DefectReport:
    """Group defects by kind. The most severe kinds come first."""
    by_kind: dict[DefectKind, list[Defect]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    groups = []
    for kind, defects in by_kind.items():
        groups.append(DefectGroup(kind, tuple(sorted(defects, key=_record_number_or_minus_one))))
    groups.sort(
        key=lambda group: (
            SEVERITIES.index(group.kind.severity),
            _record_number_or_minus_one(group.defects[0]),
        )
    )
    return DefectReport(session_id, session_file, tuple(groups))


def _record_number_or_minus_one(finding: Defect) -> int:
    if finding.record_number is None:
        return -1
    return finding.record_number
