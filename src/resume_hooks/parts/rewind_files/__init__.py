"""``rewind-files``: the states of a user's files that a session knows, and the way back to one of them.

Invariant: a project's file is touched only if it did not change since it was looked at, and after
it was copied.

The client's snapshots and deltas are read as states, prompt by prompt; the target is compared with
the disk, through open descriptors from the root folder down, so that no link is followed. Files
that would be overwritten are copied, with a manifest of digests, before the first one is touched;
an undo is the newest manifest, read as a plan.
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
