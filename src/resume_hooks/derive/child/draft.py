"""What every child has before it has contents: id, folder, title, lineage, first line.

A draft touches nothing.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.session_secrets import secrets_of_ends
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import agent_at, agent_named
from resume_hooks.sessions.archived.sessions import is_archived_copy, own_path, project_folder_of
from resume_hooks.sessions.child_titles import Kind, child_title, free_title, root_of
from resume_hooks.sessions.client_window import measured_window
from resume_hooks.sessions.lineage import Ancestor, Family
from resume_hooks.sessions.opening_layout import ChildSetting
from resume_hooks.sessions.project_folder import home_folder, project_folder
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile, is_known
from resume_hooks.sessions.transcript_files import file_of_owner, subagent_name, title_of
from resume_hooks.system.invocation import after_updates
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import BackTimes, ChildSize, Trim, continue_line
from resume_hooks.transcripts.tokens import DEFAULT_WINDOW

OUTSIDE = (
    "The new file does not lie in its project's folder: --resume will not find it there by its id."
)

FOREIGN_VERSION = (
    "2.1.42"  # of a child of another agent's session: the oldest client that all is tried on
)
HANDED_OVER = frozenset({"handoff", "rollover", "fork"})  # kinds by which another agent goes on
_PROMPT_READ = 8_192  # characters of a prompt that may become a title
NOBODY = SessionFile("", "", 0, 0)  # the parent of a session that comes from elsewhere


class ChildPlace(NamedTuple):
    """Where another agent's child lies: its folder, and what its file is called by its id."""

    agent: str
    folder: str
    name: Callable[[str], str]


class Draft(NamedTuple):
    """A child to be, in the file ``path``.

    Its title ends with ``root_title``, the root's or what it is about.

    ``own_title`` is that of a session whose lines hold one; None where it gets one. ``parent_file``
    is where the client has the parent, or had it if only an archived copy is left; that is what the
    child names. ``inode`` is that of the file that is read, ``makes_folder``: the project folder
    may be missing. ``ancestors`` stand oldest first, ``block`` is the lineage as text. ``agent`` is
    whose session it will be, ``parent_agent`` whose the parent is. Of a ``subagent`` the parent is
    who started it, but for its ``path``, which is that of the transcript that is read. ``window``
    is that of the parent's model as its client measured it, 0 where it never did. ``secrets`` knows
    those in the ends of the parent and of the root, None where nothing is quoted.
    """

    kind: Kind
    setting: ChildSetting
    path: str
    root_title: str
    own_title: str | None = None
    makes_folder: bool = True
    parent: SessionFile = NOBODY
    parent_file: str = ""
    subagent: str = ""
    inode: int = 0
    ancestors: tuple[Ancestor, ...] = ()
    block: str = ""
    warnings: tuple[str, ...] = ()
    agent: str = NAME
    parent_agent: str = NAME
    window: int = 0
    secrets: Redactor | None = None

    @property
    def session_id(self) -> str:
        """The child's id."""
        return self.setting.session_id

    @property
    def is_same_work(self) -> bool:
        """Whether it goes on with its parent's own work, in the parent's agent."""
        return self.agent == self.parent_agent and not self.subagent

    def command(self, words: str) -> str:
        """What runs us with ``words`` in the shell of its model: Claude Code's knows our name (hooks/session-start)."""
        if self.agent == NAME:
            return f"resume-hooks {words}"
        return after_updates(words)

    @property
    def folder(self) -> str:
        """The folder that its file will lie in."""
        return os.path.dirname(self.path)

    @property
    def loaded_parent(self) -> Session | None:
        """The parent, where it is a session whose own file was read."""
        if isinstance(self.parent, Session):
            return self.parent
        return None

    @property
    def stem(self) -> str:
        """Its title without the counter, which is known once it is written."""
        return child_title(self.root_title, self.kind)

    def free_title(self) -> str:
        """The title that it would get now.

        Another child may be faster, unless the folder's titles are locked.
        """
        if self.own_title is None:
            parent = self.loaded_parent
            known = parent.head_tail if parent is not None and parent.is_unchanged else None
            return free_title(self.root_title, self.kind, self.folder, known)
        return self.own_title

    def head(
        self,
        size: ChildSize | None = None,
        *,
        summary: bool = False,
        trim: Trim | None = None,
        rewound: BackTimes | None = None,
        opening_tokens: int = 0,
    ) -> bytes:
        """The first line, without its ending: where the child comes from."""
        if size:  # a large window alone is stated
            if self.agent == self.parent_agent == NAME:
                window = self.window or size.window
            else:
                window = 0
            size = size._replace(window=window if window > DEFAULT_WINDOW else 0)
        return continue_line(
            parent_id=self.parent.session_id,
            parent_file=self.parent_file,
            kind=self.kind,
            at=self.setting.at,
            summary=summary,
            size=size,
            trim=trim,
            rewound=rewound,
            subagent=self.subagent,
            opening_tokens=opening_tokens,
        )


def make_draft(  # noqa: PLR0913 - what a child may be asked for
    parent: SessionFile,
    ends: HeadTail,
    kind: Kind,
    where: Where,
    output_dir: str | None = None,
    *,
    home: str = "",
    about: str = "",
    place: ChildPlace | None = None,
) -> Draft:
    """Decide on a child of ``parent``. UsageError for what can't be a parent.

    With a ``home``, a real path, it is a session of that folder's project; else of its parent's.
    Its title tells what it is ``about``, else the root's.
    """
    parent = Session.of(parent, where)
    _require_usable_parent(parent, ends, kind, place, where)
    subagent = subagent_name(parent.path) or ""
    owner = owner_of(parent)
    if subagent:
        family = Family(where)
        ancestors = tuple(family.lineage(owner.path))
    else:
        family, ancestors = parent.family, parent.lineage
    before = _titled_before(ancestors, family, where)
    ids = [parent.session_id, *(row.session_id for row in ancestors)]
    secrets = secrets_of_ends(ends, *before.values(), spared=ids)
    ancestors = tuple(replace(row, title=secrets.redact(row.title)) for row in ancestors)
    setting = ChildSetting(
        session_id=str(uuid.uuid4()),
        cwd=home or home_folder(ends, where),
        branch=secrets.redact(ends.branch),
        version=ends.version if parent.agent == NAME else FOREIGN_VERSION,
        at=clock.now(),
    )
    lies_beside_parent = place is None and not home and parent.agent == NAME
    name = f"{setting.session_id}.jsonl"
    if place is not None:
        own_folder, name = place.folder, place.name(setting.session_id)
    elif lies_beside_parent:
        own_folder = project_folder_of(owner.path, where)
    else:
        own_folder = project_folder(setting.cwd, where)
    path = os.path.join(os.path.abspath(output_dir or own_folder), name)
    if not about and subagent:
        about = title_of(parent.path)
    elif not about:
        about = _root_title(ancestors, {parent.session_id: ends, **before}, secrets)
    root_title = secrets.redact(plain_line(secrets.redact(about)))
    block = lineage_block.render_block(
        ancestors,
        title=child_title(root_title, kind),
        session_id=setting.session_id,
        file=path,
        created=setting.at,
        searcher=place is None,  # another agent has none of the plugin's
    )
    parent_file = own_path(owner.path, where)
    if lies_beside_parent:
        may_lack_folder = parent_file != owner.path
        is_found = is_known(owner, where) or is_archived_copy(owner.path, where)
    else:
        may_lack_folder = is_found = True
    return Draft(
        kind=kind,
        setting=setting,
        path=path,
        root_title=root_title,
        makes_folder=output_dir is None and may_lack_folder,
        parent=parent if owner == parent else owner._replace(path=parent.original),
        parent_file=parent_file,
        subagent=subagent,
        inode=inode_of(parent.original),
        ancestors=ancestors,
        block=secrets.redact(block),
        warnings=() if is_found and output_dir is None else (OUTSIDE,),
        agent=place.agent if place else NAME,
        parent_agent=parent.agent,
        window=measured_window(parent.session_id, where),
        secrets=secrets,
    )


def _require_usable_parent(
    parent: Session, ends: HeadTail, kind: Kind, place: ChildPlace | None, where: Where
) -> None:
    """UsageError for a sub-agent's transcript, and for another agent's session that first goes to this client."""
    if ends.is_sidechain:
        owner = f": {ends.started_by}" if ends.started_by else "."
        raise UsageError(
            "This is a sub-agent's transcript", f"Name the session that it belongs to{owner}"
        )
    if parent.agent != NAME and place is None and kind not in HANDED_OVER:
        raise UsageError(
            f"{agent_named(parent.agent, where).label}'s sessions know no {kind}",
            "Hand it over first: resume-hooks fork --to claude.",
        )


def owner_of(session: SessionFile) -> SessionFile:
    """The session itself where its agent has it.

    Of a sub-agent's transcript the session that started it.
    """
    session_id = session.session_id.partition("/")[0]
    path = file_of_owner(session.original, session_id)
    return session._replace(session_id=session_id, path=path, source="")


def with_id_and_path(child: Draft, session_id: str, path: str) -> Draft:
    """The same child under the id, and in the file, of one which it is to take the place of."""
    old = child.session_id
    return child._replace(
        setting=child.setting._replace(session_id=session_id),
        path=path,
        block=child.block.replace(old, session_id),
    )


def inode_of(path: str) -> int:
    """What tells a file from one that took its place; 0 if it is missing."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _titled_before(
    ancestors: Sequence[Ancestor], family: Family, where: Where
) -> dict[str, HeadTail]:
    """The ends, by id, of the sessions before the parent that have a title of their own, of each title the first.

    What a title holds of a secret is known by the session that it is of. A child of ours has the
    title of its root.
    """
    first: dict[str, Ancestor] = {}
    for ancestor in ancestors[:-1]:
        if ancestor.title:
            first.setdefault(root_of(ancestor.title), ancestor)
    paths = {}
    for ancestor in first.values():
        paths[ancestor.session_id] = family.path_of(ancestor)
    return {
        session_id: agent_at(path, where).ends(path) for session_id, path in paths.items() if path
    }


def _root_title(
    ancestors: Sequence[Ancestor], ends: Mapping[str, HeadTail], secrets: Redactor
) -> str:
    """The root's title, where nobody gave it one its goal.

    Where it is gone, its oldest descendant still carries it.

    ``ends`` are those of the lineage's sessions, by id, that were read.
    """
    oldest = next((ancestor for ancestor in ancestors if ancestor.title), None)
    if oldest is None:
        return "Session"
    if oldest.derivation_type != "original":
        return root_of(oldest.title)
    root = ends.get(oldest.session_id)
    if root is None or root.given_title:
        return oldest.title
    from resume_hooks.reading.digest.prose import goal_title  # only where nobody gave a title

    prompts = (secrets.redact(prompt[:_PROMPT_READ]) for prompt in root.early_prompts)
    return goal_title(prompts) or oldest.title
