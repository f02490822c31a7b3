"""``rewind-files``: restore a user's files to a state that a session recorded.

Invariant: a file in the project is only changed after it was copied, and only if it has not changed
since it was read.

The client's snapshots and deltas give the state of the files at each prompt. The target state is
compared with the disk, through open descriptors from the root folder down, so that no link is
followed. Files to be overwritten are copied first, with a manifest of digests. An undo reads the
newest manifest as a plan.
"""

from __future__ import annotations

from resume_hooks.part import Part, Verb

PART = Part(
    verbs=(
        Verb(
            "rewind-files",
            "Restore the files as they were at a message of a session.",
            before="untrim",
        ),
    ),
)
