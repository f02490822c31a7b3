"""The rewind that a session has already."""

from __future__ import annotations

from resume_hooks.derive.child.existing import existing_child
from resume_hooks.derive.child.write import write
from resume_hooks.parts.checkpoints import checkpoint, rewind
from resume_hooks.sessions import locate
from tests.builders import ConfigHome
from tests.derive.child.test_existing import hand_off, parent

__all__ = ["parent"]


def rewound(parent: locate.SessionFile, home: ConfigHome) -> str:
    """Make a child by a rewind to the end of the session; its id."""
    mark = checkpoint.place(parent).mark
    return write(rewind.plan(parent, mark, "it was slower", home.where).child, home.where).session_id


def test_the_newest_rewind_stands(parent: locate.SessionFile, config_home: ConfigHome) -> None:
    """Until another child was made of the session; a handoff is no rewind, a rewind no handoff."""
    hand_off(parent, config_home, "")
    assert existing_child(parent, "rewind", config_home.where) is None
    child = rewound(parent, config_home)
    found = existing_child(parent, "rewind", config_home.where)
    assert found is not None
    assert (found.session_id, found.written, found.kind) == (child, False, "rewind")
    assert existing_child(parent, "handoff", config_home.where, "") is None
