"""A draft: the properties of a child before it has contents, such as its id, folder, title and lineage.

A draft writes nothing.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.session_secrets import find_secrets_in_ends
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_of_path, agent_with_name
from resume_hooks.sessions.archived.sessions import (
    client_path,
    is_archived_copy,
    project_folder_of_session,
)
from resume_hooks.sessions.child_titles import Kind, child_title, root_title_of, unused_title
from resume_hooks.sessions.client_window import measured_window
from resume_hooks.sessions.lineage import Ancestor, LineageFinder
from resume_hooks.sessions.opening_layout import ChildAttributes
from resume_hooks.sessions.project_folder import home_folder, project_folder
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile, can_client_resume
from resume_hooks.sessions.transcript_files import (
    file_of_owning_session,
    subagent_name,
    title_of_transcript,
)
from resume_hooks.system.invocation import lasting_shell_command
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import BackTimes, ChildSize, TrimRecord, make_first_line
from resume_hooks.transcripts.tokens import DEFAULT_WINDOW_TOKENS

OUTSIDE_PROJECT_WARNING = (
    "The new file is outside its project's folder: --resume will not find it by its id."
)

# the client version in the records of children of another agent's sessions: the oldest tested
# client
FOREIGN_VERSION = "2.1.42"
# the kinds of child in which another agent continues a session
CROSS_AGENT_KINDS = frozenset({"handoff", "rollover", "fork"})
# the maximum length in characters of a prompt that is used as a title
MAX_TITLE_PROMPT_CHARACTERS = 8_192
NO_PARENT = SessionFile("", "", 0, 0)  # the value in place of a parent for an imported session


class ChildPlace(NamedTuple):
    """The location of another agent's child: its folder, and the function that makes its file name from its id."""

    agent: str
    folder: str
    make_file_name: Callable[[str], str]


class Draft(NamedTuple):
    """A planned child in the file ``path``.

    Its title ends with ``root_title``: the root's title, or the child's subject.

    ``own_title`` is the title in the lines of an imported session, or None if the child gets a new
    title. ``parent_file`` is the parent's path in the client, even if only an archived copy exists.
    The child names this path. ``inode`` identifies the file that was read. ``makes_folder`` means
    that the project folder may be missing. ``ancestors`` start with the oldest, and ``block`` is
    the lineage as text. ``agent`` is the child's agent, ``parent_agent`` the parent's. The parent
    of a ``subagent`` is the session that started it, but ``parent.path`` is the sub-agent's
    transcript. ``window`` is the context window that the parent's client measured, or 0.
    ``secrets`` contains the secrets at the start and end of the parent and of the root, or is None
    if the child quotes nothing.
    """

    kind: Kind
    attributes: ChildAttributes
    path: str
    root_title: str
    own_title: str | None = None
    makes_folder: bool = True
    parent: SessionFile = NO_PARENT
    parent_file: str = ""
    subagent: str = ""
    inode: int = 0
    ancestors: tuple[Ancestor, ...] = ()
    block: str = ""
    warnings: tuple[str, ...] = ()
    agent: str = CLAUDE_NAME
    parent_agent: str = CLAUDE_NAME
    window: int = 0
    secrets: Redactor | None = None

    @property
    def session_id(self) -> str:
        """The child's id."""
        return self.attributes.session_id

    @property
    def is_same_work(self) -> bool:
        """Whether the child continues its parent's own work with the same agent."""
        return self.agent == self.parent_agent and not self.subagent

    def command(self, words: str) -> str:
        """Return the shell command with the arguments ``words``.

        The shell in Claude Code finds our program by its name (hooks/session-start).
        """
        if self.agent == CLAUDE_NAME:
            return f"resume-hooks {words}"
        return lasting_shell_command(words)

    @property
    def folder(self) -> str:
        """The folder of the child's file."""
        return os.path.dirname(self.path)

    @property
    def loaded_parent(self) -> Session | None:
        """The parent if its own file was read, else None."""
        if isinstance(self.parent, Session):
            return self.parent
        return None

    @property
    def stem(self) -> str:
        """The title without its counter, which is chosen when the child is written."""
        return child_title(self.root_title, self.kind)

    def free_title(self) -> str:
        """Return the title that the child would get now.

        Unless the folder's titles are locked, another child can take this title first.
        """
        if self.own_title is None:
            parent = self.loaded_parent
            parent_ends = parent.head_tail if parent is not None and parent.is_unchanged else None
            return unused_title(self.root_title, self.kind, self.folder, parent_ends)
        return self.own_title

    def make_first_line(
        self,
        size: ChildSize | None = None,
        *,
        has_summary: bool = False,
        trim: TrimRecord | None = None,
        rewind_times: BackTimes | None = None,
        opening_tokens: int = 0,
    ) -> bytes:
        """Return the first line without its line ending. It names the child's source."""
        if size:  # the line contains the window only if it is larger than the default
            if self.agent == self.parent_agent == CLAUDE_NAME:
                window = self.window or size.window
            else:
                window = 0
            size = size._replace(window=window if window > DEFAULT_WINDOW_TOKENS else 0)
        return make_first_line(
            parent_id=self.parent.session_id,
            parent_file=self.parent_file,
            kind=self.kind,
            continued_at=self.attributes.at,
            has_summary=has_summary,
            size=size,
            trim=trim,
            rewind_times=rewind_times,
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
    """Return a draft of a child of ``parent``. Raises UsageError for an unusable parent.

    If ``home``, a real path, is given, the child belongs to that folder's project, otherwise to its
    parent's project. ``about`` is the subject in the child's title, by default the root's title.
    """
    parent = Session.from_file(parent, where)
    _require_usable_parent(parent, ends, kind, place, where)
    subagent = subagent_name(parent.path) or ""
    owner = find_listed_session(parent)
    if subagent:
        lineage_finder = LineageFinder(where)
        ancestors = tuple(lineage_finder.find_lineage(owner.path))
    else:
        lineage_finder, ancestors = parent.lineage_finder, parent.lineage
    titled_ends = _read_titled_ancestors(ancestors, lineage_finder, where)
    ids = [parent.session_id, *(row.session_id for row in ancestors)]
    secrets = find_secrets_in_ends(ends, *titled_ends.values(), spared_strings=ids)
    ancestors = tuple(row._replace(title=secrets.redact(row.title)) for row in ancestors)
    attributes = ChildAttributes(
        session_id=str(uuid.uuid4()),
        cwd=home or home_folder(ends, where),
        branch=secrets.redact(ends.recorded_branch),
        version=ends.version if parent.agent == CLAUDE_NAME else FOREIGN_VERSION,
        at=clock.now(),
    )
    lies_beside_parent = place is None and not home and parent.agent == CLAUDE_NAME
    name = f"{attributes.session_id}.jsonl"
    if place is not None:
        folder, name = place.folder, place.make_file_name(attributes.session_id)
    elif lies_beside_parent:
        folder = project_folder_of_session(owner.path, where)
    else:
        folder = project_folder(attributes.cwd, where)
    path = os.path.join(os.path.abspath(output_dir or folder), name)
    if not about and subagent:
        about = title_of_transcript(parent.path)
    elif not about:
        about = _find_root_title(ancestors, {parent.session_id: ends, **titled_ends}, secrets)
    root_title = secrets.redact(plain_line(secrets.redact(about)))
    block = lineage_block.render_block(
        ancestors,
        title=child_title(root_title, kind),
        session_id=attributes.session_id,
        file=path,
        created_at=attributes.at,
        has_searcher=place is None,  # other agents do not have the plugin's searcher
    )
    parent_file = client_path(owner.path, where)
    if lies_beside_parent:
        may_lack_folder = parent_file != owner.path
        is_found = can_client_resume(owner, where) or is_archived_copy(owner.path, where)
    else:
        may_lack_folder = is_found = True
    return Draft(
        kind=kind,
        attributes=attributes,
        path=path,
        root_title=root_title,
        makes_folder=output_dir is None and may_lack_folder,
        parent=parent if owner == parent else owner._replace(path=parent.original),
        parent_file=parent_file,
        subagent=subagent,
        inode=read_inode(parent.original),
        ancestors=ancestors,
        block=secrets.redact(block),
        warnings=() if is_found and output_dir is None else (OUTSIDE_PROJECT_WARNING,),
        agent=place.agent if place else CLAUDE_NAME,
        parent_agent=parent.agent,
        window=measured_window(parent.session_id, where),
        secrets=secrets,
    )


def _require_usable_parent(
    parent: Session, ends: HeadTail, kind: Kind, place: ChildPlace | None, where: Where
) -> None:
    """Raise UsageError for a sub-agent's transcript, or a foreign session that Claude Code must take over first."""
    if ends.is_sidechain:
        owner = f": {ends.starting_session_id}" if ends.starting_session_id else "."
        raise UsageError(
            "This is a sub-agent's transcript", f"Name the session that it belongs to{owner}"
        )
    if parent.agent != CLAUDE_NAME and place is None and kind not in CROSS_AGENT_KINDS:
        raise UsageError(
            f"{agent_with_name(parent.agent, where).label}'s sessions do not support {kind}",
            "Hand it over first: resume-hooks fork --to claude.",
        )


def find_listed_session(session: SessionFile) -> SessionFile:
    """Return the session as its agent lists it.

    For a sub-agent's transcript, return the session that started it.
    """
    session_id = session.session_id.partition("/")[0]
    path = file_of_owning_session(session.original, session_id)
    return session._replace(session_id=session_id, path=path, source="")


def replace_id_and_path(child: Draft, session_id: str, path: str) -> Draft:
    """Return the child with another id and file, to replace an existing session."""
    old_id = child.session_id
    return child._replace(
        attributes=child.attributes._replace(session_id=session_id),
        path=path,
        block=child.block.replace(old_id, session_id),
    )


def read_inode(path: str) -> int:
    """Return the file's inode, or 0 if the file is missing. A replacement of the file has another inode."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _read_titled_ancestors(
    ancestors: Sequence[Ancestor], lineage_finder: LineageFinder, where: Where
) -> dict[str, HeadTail]:
    """Return, by session id, the ends of the first ancestor with each title, without the parent.

    A secret in a title can be recognized only from the session in which the title originated. Our
    children have the title of their root.
    """
    first_by_title: dict[str, Ancestor] = {}
    for ancestor in ancestors[:-1]:
        if ancestor.title:
            first_by_title.setdefault(root_title_of(ancestor.title), ancestor)
    paths = {}
    for ancestor in first_by_title.values():
        paths[ancestor.session_id] = lineage_finder.find_transcript(ancestor)
    return {
        session_id: agent_of_path(path, where).read_ends(path)
        for session_id, path in paths.items()
        if path
    }


def _find_root_title(
    ancestors: Sequence[Ancestor], ends: Mapping[str, HeadTail], secrets: Redactor
) -> str:
    """Return the root's title, or its goal if the user did not set a title.

    If the root is gone, its oldest descendant still has that title.

    ``ends`` has the ends of the lineage's sessions that were read, by id.
    """
    oldest = next((ancestor for ancestor in ancestors if ancestor.title), None)
    if oldest is None:
        return "Session"
    if oldest.derivation_type != "original":
        return root_title_of(oldest.title)
    root = ends.get(oldest.session_id)
    if root is None or root.given_title:
        return oldest.title
    from resume_hooks.reading.digest.prose import (
        make_goal_title,
    )  # imported late, because it is needed only if no title is given

    prompts = (
        secrets.redact(prompt[:MAX_TITLE_PROMPT_CHARACTERS]) for prompt in root.early_prompts
    )
    return make_goal_title(prompts) or oldest.title
