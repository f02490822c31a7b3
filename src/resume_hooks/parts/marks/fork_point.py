"""Find the point to which ``back`` returns if a session has no mark.

For a session made by a trim or an untrim, this is the mark of its parent. For a fork, it is the
point where the fork branched off from its parent.
"""

from __future__ import annotations

from typing import Final

from resume_hooks import clock
from resume_hooks.derive.child.existing_child import has_later_records
from resume_hooks.errors import MarkNotFound
from resume_hooks.parts.marks import state
from resume_hooks.parts.marks.state import Mark
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of_path, readable_session
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.invocation import shell_command
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, get_mapping
from resume_hooks.transcripts.transcript import scan_transcript

FORK_CHILD_KIND: Final = "fork"
FULL_COPY_KINDS = frozenset({"trim", "untrim"})
"""Children of these kinds contain every record of their parent, so ``back`` can use the parent's
mark in them."""


def find_fork_point(session: SessionFile, where: Where) -> Mark | None:
    """Return the point to which ``back`` returns in a session without a mark, or None.

    In a trimmed or untrimmed child, this point is the mark of the child's parent. In a fork, it is
    the last message that the fork shares with its parent. If the fork's records do not say that
    they were copied from the parent, they are recognized by the ids that also occur in the parent.

    No file is written. Raise MarkNotFound if the fork and its parent share no message.
    """
    lineage_finder = LineageFinder(where)
    parent = ancestor = lineage_finder.find_parent(session.path)
    while ancestor is not None and ancestor.kind in FULL_COPY_KINDS:
        if (mark := state.wait_for_mark(ancestor.session_id)) is not None:
            return mark
        path = lineage_finder.locate_parent(ancestor, session.path)
        ancestor = lineage_finder.find_parent(path) if path else None
    if parent is None or parent.kind != FORK_CHILD_KIND or parent.subagent or not parent.session_id:
        return None
    copied_nodes: list[Node] = []

    def add_to_copied_nodes(_: Line, record: Record, node: Node | None) -> None:
        if (
            node is not None
            and get_mapping(record, "forkedFrom").get("sessionId") == parent.session_id
        ):
            copied_nodes.append(node)

    nodes = scan_transcript(session.path, observers=[add_to_copied_nodes]).nodes
    if not copied_nodes and (path := lineage_finder.locate_parent(parent, session.path)):
        parent_records = scan_transcript(readable_session(path, where).path).nodes_by_uuid
        copied_nodes = [node for node in nodes if node.uuid in parent_records]
    last_shared_node = next(
        (node for node in reversed(copied_nodes) if node.is_message and not node.is_sidechain), None
    )
    if last_shared_node is None:
        raise MarkNotFound(
            f"It is unknown where this fork branched off from its parent {parent.session_id}",
            f"To continue in the parent, run this in Claude Code: /resume {parent.session_id}",
        )
    fork_time = clock.normalize_timestamp(parent.derived_at) or clock.timestamp_from_milliseconds(
        last_shared_node.time_ms or 0
    )
    return Mark(
        session.session_id,
        last_shared_node.uuid,
        last_shared_node.line_number,
        "",
        fork_time,
        parent.session_id,
    )


def list_remarks_on_newer_parent_turns(
    session: SessionFile, fork_time: str, where: Where
) -> list[str]:
    """Return a list with one remark if the parent of a fork got new turns after ``fork_time``.

    Otherwise, return an empty list.
    """
    lineage_finder = LineageFinder(where)
    parent = lineage_finder.find_parent(session.path)
    path = lineage_finder.locate_parent(parent, session.path) if parent else None
    if (
        parent is None
        or path is None
        or not has_later_records(agent_of_path(path, where).read_ends(path), fork_time)
    ):
        return []
    commands = f"/resume {parent.session_id}, or in a shell: {shell_command(f'resume {parent.session_id}')}"
    return [
        (
            "The parent got more turns after this fork was made; the new session does not contain them. "
            f"To continue in the parent: {commands}"
        )
    ]
