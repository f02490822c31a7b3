"""What every child has before it has contents: id, folder, title, lineage, first line. A draft touches nothing."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.archived.sessions import is_archived_copy, own_path, project_folder_of
from resume_hooks.sessions.child_titles import child_title, root_of, title_stem
from resume_hooks.sessions.lineage import Ancestor, Family
from resume_hooks.sessions.opening_records import ChildSetting
from resume_hooks.sessions.project_folder import home_folder, project_folder
from resume_hooks.sessions.session_files import SessionFile, is_known
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import ChildSize, RewindTimes, Trim, continue_line

OUTSIDE = "The new file does not lie in its project's folder: --resume will not find it there by its id."
"""The warning of a child that the client finds in no folder."""

NOBODY = SessionFile("", "", 0, 0)
"""The parent of a session that comes from elsewhere."""


class Draft(NamedTuple):
    """A child to be, in the file ``path``; its title begins with ``root_title``, the root's or what it is about.

    ``own_title`` is that of a session whose lines hold one; None where it gets one. ``parent_file`` is where the client
    has the parent, or had it if only an archived copy is left; that is what the child names. ``inode`` is that of the
    file that is read, ``makes_folder``: the project folder may be missing. ``ancestors`` stand oldest first, ``block``
    is the lineage as text.
    """

    kind: str
    setting: ChildSetting
    path: str
    root_title: str
    own_title: str | None = None
    makes_folder: bool = True
    parent: SessionFile = NOBODY
    parent_file: str = ""
    inode: int = 0
    ancestors: tuple[Ancestor, ...] = ()
    block: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def session_id(self) -> str:
        """The child's id."""
        return self.setting.session_id

    @property
    def folder(self) -> str:
        """The folder that its file will lie in."""
        return os.path.dirname(self.path)

    @property
    def stem(self) -> str:
        """Its title without the counter, which is known once it is written."""
        return title_stem(self.root_title, self.kind)

    def free_title(self) -> str:
        """The title that it would get now; another child may be faster, unless the folder's titles are locked."""
        return child_title(self.root_title, self.kind, self.folder) if self.own_title is None else self.own_title

    def head(
        self,
        size: ChildSize | None = None,
        *,
        summary: bool = False,
        trim: Trim | None = None,
        rewound: RewindTimes | None = None,
    ) -> bytes:
        """The first line, without its ending: where the child comes from."""
        return continue_line(
            parent_id=self.parent.session_id,
            parent_file=self.parent_file,
            kind=self.kind,
            at=self.setting.at,
            summary=summary,
            size=size,
            trim=trim,
            rewound=rewound,
        )


def draft(
    parent: SessionFile,
    ends: HeadTail,
    kind: str,
    where: Where,
    output_dir: str | None = None,
    *,
    home: str = "",
    about: str = "",
) -> Draft:
    """Decide on a child of ``parent``. UsageError for what can't be a parent.

    With a ``home``, a real path, it is a session of that folder's project; else of its parent's. Its title begins with
    what it is ``about``, else with the root's.
    """
    if ends.is_sidechain:
        raise UsageError("This is a sub-agent's transcript", "Name the session that it belongs to.")
    ancestors = tuple(Family(where).lineage(parent.path))
    own_folder = project_folder(home, where) if home else project_folder_of(parent.path, where)
    setting = ChildSetting(str(uuid.uuid4()), home or home_folder(ends, where), ends.branch, ends.version, clock.now())
    path = os.path.join(os.path.abspath(output_dir or own_folder), f"{setting.session_id}.jsonl")
    root_title, _ = redact(plain_line(about) or _root_title(ancestors))
    stem = title_stem(root_title, kind)
    block = lineage_block.render(ancestors, title=stem, session_id=setting.session_id, file=path, created=setting.at)
    known = bool(home) or is_known(parent, where) or is_archived_copy(parent.path, where)
    parent_file = own_path(parent.path, where)
    return Draft(
        kind=kind,
        setting=setting,
        path=path,
        root_title=root_title,
        makes_folder=output_dir is None and (bool(home) or parent_file != parent.path),
        parent=parent,
        parent_file=parent_file,
        inode=inode_of(parent.path),
        ancestors=ancestors,
        block=redact(block)[0],  # a title is often the first prompt
        warnings=() if known and output_dir is None else (OUTSIDE,),
    )


def renamed(child: Draft, session_id: str) -> Draft:
    """The same child under another id: that of one which it is to take the place of."""
    old = child.session_id
    return child._replace(
        setting=child.setting._replace(session_id=session_id),
        path=child.path.replace(old, session_id),
        block=child.block.replace(old, session_id),
    )


def inode_of(path: str) -> int:
    """What tells a file from one that took its place; 0 if it is missing."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _root_title(ancestors: Sequence[Ancestor]) -> str:
    """The root's title; where the root is gone, its oldest descendant still carries it."""
    oldest = next((ancestor for ancestor in ancestors if ancestor.title), None)
    if oldest is None:
        return "Session"
    return oldest.title if oldest.derivation_type == "original" else root_of(oldest.title)
