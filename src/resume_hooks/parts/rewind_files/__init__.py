"""``rewind-files``: restore a user's files to a state that a session recorded.

The client records snapshots of the files and changes to these snapshots. From them, this part
computes the state of the files at each prompt, and compares it with the files on disk. It opens a
file by descriptors, from the root folder down, so that it follows no symbolic link.

Before a file is overwritten, it is copied, and its digest is written to a manifest. To undo a run,
the newest manifest is used as the plan.

Invariant: a file in the project is changed only after it was copied, and only if it has not changed
since it was read.
"""

from __future__ import annotations

from resume_hooks.part import Part, Verb

PART = Part(
    verbs=(
        Verb(
            "rewind-files",
            "Restore the files to their state at a message of a session.",
            insert_before="untrim",
        ),
    ),
)
