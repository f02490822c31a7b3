"""Inputs that the client takes for the state of a file when it resumes, and that must therefore stay.

Measured on 2.1.42 to 2.1.329: where a file on disk is newer than the last Write of it, the client compares the two
and sends the whole file along as changed (up to 8,600 characters each), unless the input is still what the file holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from resume_hooks.transcripts.content import Call


def restored_writes(
    calls: Mapping[str, Call], done: Iterable[str], times_ms: Mapping[int, int | None], folders: Iterable[str]
) -> frozenset[str]:
    """The calls that wrote a file of ``folders`` last, where the file on disk is newer.

    ``done`` are the ids of calls that succeeded, ``times_ms`` the instants of records. Other folders are not looked
    at: what a transcript names may be anywhere.
    """
    last: dict[str, str] = {}
    for call_id in done:
        call = calls.get(call_id)
        if call is not None and call.tool in {"Write", "Edit", "MultiEdit"} and call.target:
            earlier = calls.get(last.get(call.target, ""))
            if earlier is None or earlier.number < call.number:
                last[call.target] = call_id
    roots = tuple(os.path.join(folder, "") for folder in folders if os.path.isabs(folder))
    return frozenset(
        call_id
        for target, call_id in last.items()
        if calls[call_id].tool == "Write"
        and os.path.normpath(target).startswith(roots)
        and _changed_ms(target) > (times_ms.get(calls[call_id].number) or 0)
    )


def _changed_ms(path: str) -> float:
    try:
        return os.stat(path).st_mtime * 1000
    except (OSError, ValueError):
        return 0.0
