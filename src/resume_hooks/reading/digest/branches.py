"""Which records were read already, and which of them lie on branches that were abandoned.

A child copies records of its parent under their uuids: they were found there. Of a fork with uuids of its own each
record says which one it is a copy of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from resume_hooks.reading.digest.facts import Quote
from resume_hooks.transcripts.records import Record, copied_from, string


class Branches:
    """The links between the records of the files read so far, one file after the other."""

    def __init__(self) -> None:
        self._orders: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._last = ""
        self._hint = ""
        self._copied_until = 0

    def is_copy(self, record: Record, order: int) -> bool:
        """Whether a record was found before; if not, its link is noted. What has no uuid is no copy."""
        uuid = record.get("uuid")
        if not isinstance(uuid, str):
            return False
        if "forkedFrom" in record:
            source = self._orders.get(copied_from(record))
            if source is not None:
                self._orders.setdefault(uuid, source)
        return self.is_known(uuid, string(record, "parentUuid") or string(record, "logicalParentUuid"), order)

    def is_known(self, uuid: str, parent: str, order: int) -> bool:
        """The same of a record by its ids; ``order`` counts the records that were read."""
        found = self._orders.setdefault(uuid, order)
        if uuid in self._parents:
            return True  # twice in one file
        if found != order:
            self._copied_until = max(self._copied_until, found)
            return True
        self._parents[uuid] = parent
        self._last = uuid
        return False

    def hinted(self, leaf: str) -> None:
        """The client noted at which record it stood."""
        self._hint = leaf

    def end_file(self, session_id: str) -> Callable[[Quote], bool]:
        """A file was read to its end: tells of what was said whether it still counts.

        What does not: branches of this file that leave the live one, and what a parent went on with after this file
        was copied from it. What hangs on another root, or on nothing, was not abandoned for all that is known.
        """
        parents, live, copied_until = self._parents, self._live(), self._copied_until
        self._parents, self._last, self._hint, self._copied_until = {}, "", "", 0
        leaves: dict[str, bool] = {}

        def counts(said: Quote) -> bool:
            if said.place.session_id != session_id:
                return not copied_until or said.place.order <= copied_until
            return not _leaves(said.uuid, live, parents, leaves)

        return counts

    def _live(self) -> set[str]:
        """The records from the leaf upward, and the copied one that they hang on."""
        live = self._upward(self._last)
        if self._hint in self._parents and self._hint not in live:
            live = self._upward(self._hint)
        return live

    def _upward(self, leaf: str) -> set[str]:
        live: set[str] = set()
        uuid = leaf
        while uuid in self._parents and uuid not in live:
            live.add(uuid)
            uuid = self._parents[uuid]
        return live | {uuid} if uuid in self._orders else live


def _leaves(uuid: str, live: Collection[str], parents: Mapping[str, str], known: dict[str, bool]) -> bool:
    """Whether a record lies on a branch that leaves the live one."""
    way: list[str] = []
    at = uuid
    while at in parents and at not in live and at not in known:
        known[at] = False  # until it is known; a circle ends here
        way.append(at)
        at = parents[at]
    found = known.get(at, False) or (at in live and at != uuid)
    known.update(dict.fromkeys(way, found))
    return found if way else known.get(uuid, False)
