"""Choose the id, folder, title and lineage of a child before its contents are made.

Making a draft writes no files.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.session_secrets import make_redactor_for_ends
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_of_path, agent_with_name
from resume_hooks.sessions.archived.sessions import (
    client_path,
    is_archived_copy,
    project_folder_of_session,
)
from resume_hooks.sessions.child_titles import ChildKind, child_title, root_title_of, unused_title
from resume_hooks.sessions.client_window import measured_context_window
from resume_hooks.sessions.lineage import Ancestor, LineageFinder
from resume_hooks.sessions.opening_layout import ChildAttributes
from resume_hooks.sessions.project_folder import home_folder_of_session, project_folder
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
from resume_hooks.transcripts.provenance import (
    ChildSize,
    RewindTimestamps,
    TrimRecord,
    make_first_line,
)
from resume_hooks.transcripts.tokens import DEFAULT_WINDOW_TOKENS

OUTSIDE_PROJECT_WARNING = (
    "The new file is outside its project's folder: --resume will not find it by its id."
)

# Children of another agent's sessions have this client version in their records. It is the oldest
# version that was tested.
FOREIGN_CHILD_CLIENT_VERSION = "2.1.42"
# The kinds of children that can continue a session with another agent.
CROSS_AGENT_CHILD_KINDS = frozenset({"handoff", "rollover", "fork"})
# At most this many characters of a prompt are read for a title.
MAX_TITLE_PROMPT_CHARACTERS = 8_192
# Stands for the parent of an imported session, which has none.
NO_PARENT = SessionFile("", "", 0, 0)


class ChildLocation(NamedTuple):
    """The location of a child that another agent can resume.

    ``folder`` is the folder of the child's file. ``make_file_name`` makes the file's name from the
    child's id.
    """

    agent: str
    folder: str
    make_file_name: Callable[[str], str]


class Draft(NamedTuple):
    """A child that is planned for the file ``path``.

    The child's title ends with ``root_title``, which is the title of the first session or the
    child's subject. ``own_title`` is the title that the lines of an imported session already
    contain, or None if the child gets a new title.

    ``parent_file`` is the path of the parent in the client's folder. The child names this path even
    if only an archived copy of the parent exists. ``inode`` is the inode that the parent's file had
    when it was read. If ``may_create_folder`` is true, the project folder is created if it is
    missing. ``ancestors`` starts with the oldest one, and ``lineage_text`` is the lineage as text.
    ``agent`` is the child's agent, and ``parent_agent`` is the parent's agent.

    If the child continues a sub-agent, ``subagent`` is the sub-agent's name. In this case,
    ``parent`` stands for the session that started the sub-agent, but ``parent.path`` is the path of
    the sub-agent's transcript. ``context_window_tokens`` is the context window that the parent's
    client reported, or 0. ``redactor`` removes the secrets that were found at the start and end of
    the parent and of its ancestors. It is None if the child quotes no text.
    """

    kind: ChildKind
    attributes: ChildAttributes
    path: str
    root_title: str
    own_title: str | None = None
    may_create_folder: bool = True
    parent: SessionFile = NO_PARENT
    parent_file: str = ""
    subagent: str = ""
    inode: int = 0
    ancestors: tuple[Ancestor, ...] = ()
    lineage_text: str = ""
    warnings: tuple[str, ...] = ()
    agent: str = CLAUDE_NAME
    parent_agent: str = CLAUDE_NAME
    context_window_tokens: int = 0
    redactor: Redactor | None = None

    @property
    def session_id(self) -> str:
        """The child's id."""
        return self.attributes.session_id

    @property
    def continues_same_work(self) -> bool:
        """Whether the child continues its parent with the same agent, and the parent is not a sub-agent."""
        return self.agent == self.parent_agent and not self.subagent

    def make_command(self, arguments: str) -> str:
        """Return the shell command that runs resume-hooks with the given ``arguments``.

        In Claude Code, the command starts with ``resume-hooks``, a shell function that
        hooks/session-start defines. In other agents, it starts with a path that is still valid
        after an update of the plugin.
        """
        if self.agent == CLAUDE_NAME:
            return f"resume-hooks {arguments}"
        return lasting_shell_command(arguments)

    @property
    def folder(self) -> str:
        """The folder of the child's file."""
        return os.path.dirname(self.path)

    @property
    def loaded_parent(self) -> Session | None:
        """``parent`` if it is a loaded ``Session``, and otherwise None."""
        if isinstance(self.parent, Session):
            return self.parent
        return None

    @property
    def title_stem(self) -> str:
        """The title without its number, which is chosen only when the child is written."""
        return child_title(self.root_title, self.kind)

    def find_free_title(self) -> str:
        """Return the title that the child would get if it were written now.

        The title is not reserved: another child can take it until the folder's titles are locked.
        """
        if self.own_title is None:
            parent = self.loaded_parent
            parent_ends = parent.ends if parent is not None and parent.is_unchanged else None
            return unused_title(self.root_title, self.kind, self.folder, parent_ends)
        return self.own_title

    def make_first_line(
        self,
        size: ChildSize | None = None,
        *,
        has_summary: bool = False,
        trim: TrimRecord | None = None,
        rewind_times: RewindTimestamps | None = None,
        opening_tokens: int = 0,
    ) -> bytes:
        """Return the child's first line, which names the parent. The line has no line ending."""
        if size:  # The first line names the context window only if it is larger than the default.
            if self.agent == self.parent_agent == CLAUDE_NAME:
                window = self.context_window_tokens or size.window
            else:
                window = 0
            size = size._replace(window=window if window > DEFAULT_WINDOW_TOKENS else 0)
        return make_first_line(
            parent_id=self.parent.session_id,
            parent_file=self.parent_file,
            kind=self.kind,
            continued_at=self.attributes.created_at,
            has_summary=has_summary,
            size=size,
            trim=trim,
            rewind_times=rewind_times,
            subagent=self.subagent,
            opening_tokens=opening_tokens,
        )


def make_draft(  # noqa: PLR0913 - what a child may be asked for
    parent: SessionFile,
    parent_ends: HeadTail,
    kind: ChildKind,
    where: Where,
    output_dir: str | None = None,
    *,
    home: str = "",
    subject: str = "",
    location: ChildLocation | None = None,
) -> Draft:
    """Return a draft of a child of ``parent``. Raises UsageError if ``parent`` cannot have this child.

    The child belongs to the project of the folder ``home``, a path without symbolic links. If
    ``home`` is empty, the child belongs to its parent's project. ``subject`` becomes part of the
    child's title. If it is empty, the title is made from the title of the first session.

    If ``location`` is given, the child belongs to another agent. If ``output_dir`` is given, the
    child's file is written there.
    """
    parent = Session.from_file(parent, where)
    _require_usable_parent(parent, parent_ends, kind, location, where)
    subagent = subagent_name(parent.path) or ""
    owner = find_session_owning_folder(parent)
    if subagent:
        lineage_finder = LineageFinder(where)
        ancestors = tuple(lineage_finder.find_lineage(owner.path))
    else:
        lineage_finder, ancestors = parent.lineage_finder, parent.lineage
    ends_by_session = _read_titled_ancestors(ancestors, lineage_finder, where)
    ids = [parent.session_id, *(row.session_id for row in ancestors)]
    redactor = make_redactor_for_ends(parent_ends, *ends_by_session.values(), harmless_texts=ids)
    ancestors = tuple(row._replace(title=redactor.redact(row.title)) for row in ancestors)
    attributes = ChildAttributes(
        session_id=str(uuid.uuid4()),
        cwd=home or home_folder_of_session(parent_ends, where),
        branch=redactor.redact(parent_ends.recorded_branch),
        version=parent_ends.version
        if parent.agent == CLAUDE_NAME
        else FOREIGN_CHILD_CLIENT_VERSION,
        created_at=clock.now(),
    )
    is_in_parent_folder = location is None and not home and parent.agent == CLAUDE_NAME
    name = f"{attributes.session_id}.jsonl"
    if location is not None:
        folder, name = location.folder, location.make_file_name(attributes.session_id)
    elif is_in_parent_folder:
        folder = project_folder_of_session(owner.path, where)
    else:
        folder = project_folder(attributes.cwd, where)
    path = os.path.join(os.path.abspath(output_dir or folder), name)
    if not subject and subagent:
        subject = title_of_transcript(parent.path)
    elif not subject:
        subject = _find_root_title(
            ancestors, {parent.session_id: parent_ends, **ends_by_session}, redactor
        )
    root_title = redactor.redact(plain_line(redactor.redact(subject)))
    block = lineage_block.render_lineage_block(
        ancestors,
        title=child_title(root_title, kind),
        session_id=attributes.session_id,
        file=path,
        created_at=attributes.created_at,
        has_searcher=location is None,  # Only Claude Code has the sub-agent that searches sessions.
    )
    parent_file = client_path(owner.path, where)
    if is_in_parent_folder:
        may_lack_folder = parent_file != owner.path
        is_found = can_client_resume(owner, where) or is_archived_copy(owner.path, where)
    else:
        may_lack_folder = is_found = True
    return Draft(
        kind=kind,
        attributes=attributes,
        path=path,
        root_title=root_title,
        may_create_folder=output_dir is None and may_lack_folder,
        parent=parent if owner == parent else owner._replace(path=parent.original_path),
        parent_file=parent_file,
        subagent=subagent,
        inode=read_inode(parent.original_path),
        ancestors=ancestors,
        lineage_text=redactor.redact(block),
        warnings=() if is_found and output_dir is None else (OUTSIDE_PROJECT_WARNING,),
        agent=location.agent if location else CLAUDE_NAME,
        parent_agent=parent.agent,
        context_window_tokens=measured_context_window(parent.session_id, where),
        redactor=redactor,
    )


def _require_usable_parent(
    parent: Session,
    parent_ends: HeadTail,
    kind: ChildKind,
    location: ChildLocation | None,
    where: Where,
) -> None:
    """Raise UsageError if ``parent`` cannot have a child of this kind.

    A sub-agent's transcript cannot have children. A session of another agent can have a child in
    Claude Code only if the kind is in ``CROSS_AGENT_CHILD_KINDS``. For any other kind, the user must fork
    the session to Claude Code first.
    """
    if parent_ends.is_sidechain:
        owner = f": {parent_ends.starting_session_id}" if parent_ends.starting_session_id else "."
        raise UsageError(
            "This is a sub-agent's transcript",
            f"Name the session that started the sub-agent{owner}",
        )
    if parent.agent != CLAUDE_NAME and location is None and kind not in CROSS_AGENT_CHILD_KINDS:
        raise UsageError(
            f"{agent_with_name(parent.agent, where).label}'s sessions do not support {kind}",
            "Hand it over first: resume-hooks fork --to claude.",
        )


def find_session_owning_folder(session: SessionFile) -> SessionFile:
    """Return the session under which an agent lists a transcript.

    For a sub-agent's transcript, this is the session that started the sub-agent.
    """
    session_id = session.session_id.partition("/")[0]
    path = file_of_owning_session(session.original_path, session_id)
    return session._replace(session_id=session_id, path=path, source_path="")


def replace_id_and_path(child: Draft, session_id: str, path: str) -> Draft:
    """Return ``child`` with a different id and file, so that it can replace an existing session."""
    old_id = child.session_id
    return child._replace(
        attributes=child.attributes._replace(session_id=session_id),
        path=path,
        lineage_text=child.lineage_text.replace(old_id, session_id),
    )


def read_inode(path: str) -> int:
    """Return the file's inode, which changes if the file is replaced. If the file is missing, return 0."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _read_titled_ancestors(
    ancestors: Sequence[Ancestor], lineage_finder: LineageFinder, where: Where
) -> dict[str, HeadTail]:
    """Read the start and the end of each ancestor that introduced a title, and return them by session id.

    Descendants inherit the title of their first session. A secret in a title can be recognized only
    in the session where the title was first used, so only the oldest ancestor with each title is
    read. The last ancestor is not read, because it is the parent.
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
    ancestors: Sequence[Ancestor], parent_ends: Mapping[str, HeadTail], redactor: Redactor
) -> str:
    """Return the title of the first session, or the goal in its first prompts if it has no title.

    If the first session no longer exists, the title is taken from its oldest existing descendant,
    which inherited it. ``ends`` maps session ids to the starts and ends of the ancestors that were
    read.
    """
    oldest = next((ancestor for ancestor in ancestors if ancestor.title), None)
    if oldest is None:
        return "Session"
    if oldest.derivation_type != "original":
        return root_title_of(oldest.title)
    root = parent_ends.get(oldest.session_id)
    if root is None or root.given_title:
        return oldest.title
    # Imported here because it is needed only if the user did not set a title.
    from resume_hooks.reading.digest.prose import make_goal_title

    prompts = (
        redactor.redact(prompt[:MAX_TITLE_PROMPT_CHARACTERS]) for prompt in root.early_prompts
    )
    return make_goal_title(prompts) or oldest.title
