"""Recognize records that a child copied from its parent, and records that are not on the live branch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from resume_hooks.reading.digest.facts import Quote
from resume_hooks.transcripts.records import Record, get_string, read_copied_uuid


class Branches:
    """The links between the records of a session and its ancestors, as far as their files have been read."""

    def __init__(self) -> None:
        self._order_by_uuid: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._last_uuid = ""
        self._reported_leaf = ""
        self._last_copied_order = 0

    def is_copy_of_earlier_record(self, record: Record, record_order: int) -> bool:
        """Check whether a record is a copy of a record that has already been processed.

        If it is not a copy, remember its uuid and its parent. A record without a uuid is never a
        copy.
        """
        uuid = record.get("uuid")
        if not isinstance(uuid, str):
            return False
        if "forkedFrom" in record:
            source = self._order_by_uuid.get(read_copied_uuid(record))
            if source is not None:
                self._order_by_uuid.setdefault(uuid, source)
        return self.is_uuid_of_earlier_record(
            uuid,
            get_string(record, "parentUuid") or get_string(record, "logicalParentUuid"),
            record_order,
        )

    def is_uuid_of_earlier_record(self, uuid: str, parent_uuid: str, record_order: int) -> bool:
        """Check whether a record with this uuid has already been processed. If not, remember the uuid.

        ``record_order`` is the record's position among all records that were read.
        """
        first_order = self._order_by_uuid.setdefault(uuid, record_order)
        if uuid in self._parents:
            return True  # The file contains the record twice.
        if first_order != record_order:
            self._last_copied_order = max(self._last_copied_order, first_order)
            return True
        self._parents[uuid] = parent_uuid
        self._last_uuid = uuid
        return False

    def set_reported_leaf(self, leaf_uuid: str) -> None:
        """Remember the uuid of the record that the client reports as the current leaf."""
        self._reported_leaf = leaf_uuid

    def finish_file_and_make_branch_check(self, session_id: str) -> Callable[[Quote], bool]:
        """Finish a file. Return a function that checks whether a quote is still part of the conversation.

        A quote from this file is not part of the conversation if its record is on a branch that
        forked off the live branch. A quote from an ancestor is not part of the conversation if its
        record comes after the last record that this file copied. In case of doubt, a quote is
        treated as part of the conversation: if the root of its record is unknown, or differs from
        the root of the live branch.
        """
        live_uuids = self._collect_ancestors(self._last_uuid)
        if self._reported_leaf in self._parents and self._reported_leaf not in live_uuids:
            live_uuids = self._collect_ancestors(self._reported_leaf)
        parents, copied_until = self._parents, self._last_copied_order
        self._parents, self._last_uuid, self._reported_leaf, self._last_copied_order = {}, "", "", 0
        known_results: dict[str, bool] = {}

        def is_quote_on_live_branch(quote: Quote) -> bool:
            if quote.position.session_id != session_id:
                return not copied_until or quote.position.order <= copied_until
            return not _is_on_side_branch(quote.uuid, live_uuids, parents, known_results)

        return is_quote_on_live_branch

    def _collect_ancestors(self, leaf_uuid: str) -> set[str]:
        """Return the uuids of a leaf and of its ancestors in this file.

        If the oldest of these records continues a record in another file, the uuid of the record in
        the other file is included.
        """
        ancestors: set[str] = set()
        uuid = leaf_uuid
        parent = self._parents.get(uuid)
        while parent is not None and uuid not in ancestors:
            ancestors.add(uuid)
            uuid = parent
            parent = self._parents.get(uuid)
        if uuid in self._order_by_uuid:
            ancestors.add(uuid)
        return ancestors


def _is_on_side_branch(
    uuid: str,
    live_uuids: Collection[str],
    parents: Mapping[str, str],
    known_results: dict[str, bool],
) -> bool:
    """Check whether a record is on a side branch, which is a branch that leaves the live branch.

    If the links from the record do not lead to the live branch, the result is False.
    """
    visited: list[str] = []
    current = uuid
    while current in parents and current not in live_uuids and current not in known_results:
        # This provisional value stops the search if the records' links form a cycle.
        known_results[current] = False
        visited.append(current)
        current = parents[current]
    is_on_side_branch = known_results.get(current, False) or (
        current in live_uuids and current != uuid
    )
    known_results.update(dict.fromkeys(visited, is_on_side_branch))
    if visited:
        return is_on_side_branch
    return known_results.get(uuid, False)
