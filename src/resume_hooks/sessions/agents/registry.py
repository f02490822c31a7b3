"""All agents, Claude Code and those of parts, as a table.

For an agent that is not installed, only its folder is checked; its part is not loaded.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks import questions
from resume_hooks.errors import NotATranscript, SessionNotFound, UsageError, WriteFailed
from resume_hooks.part_table import AGENTS as AGENTS_OF_PARTS
from resume_hooks.paths import Where, is_session_id
from resume_hooks.seam import is_installed
from resume_hooks.sessions.agents.claude import CLAUDE_NAME, Agent
from resume_hooks.sessions.session_files import SessionFile, SessionStore, sort_newest_first
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.storage import removal
from resume_hooks.transcripts.head_tail import HeadTail

ALL_AGENTS = "all"
# in the state folder: other agents' sessions in the common record format, one folder per agent
COPIES_FOLDER_NAME = "mirrors"
# the file next to the copies of prompts that records how far the history was read
READ_STATE_NAME = "read.json"
# the size in bytes up to which a list reads a new prompt history: half a second
MAX_FIRST_READ_BYTES = 8 * 1024 * 1024


class AgentRow(NamedTuple):
    """An agent: its part (``""`` for the core), and the fields of ``part.Agent``."""

    name: str
    part: str
    home_variable: str
    home: str
    folders: tuple[str, ...]
    file_pattern: str
    session_variable: str
    loss_note: str
    strategy: str
    writer: str
    defects: str
    is_loss: str
    model: str

    def home_folder(self, where: Where) -> str:
        """Return the agent's folder, which may not exist."""
        if not self.home:
            return where.config
        if not self.home_variable:
            return os.path.join(where.config, self.home)
        default = os.path.join(where.environ.get("HOME") or os.path.expanduser("~"), self.home)
        return os.path.abspath(where.environ.get(self.home_variable) or default)

    def has_sessions(self, where: Where) -> bool:
        """Check whether the agent has sessions on this machine, or we have copies of its prompts.

        Claude Code always counts.
        """
        if not self.home:
            return True
        if self.home_variable:
            return os.path.isdir(self.home_folder(where))
        return os.path.isfile(self.home_folder(where)) or os.path.isdir(self._copies(where))

    def is_quick_to_list(self, where: Where) -> bool:
        """Check whether the agent has sessions, and its prompts are quick to read or were read before."""
        with contextlib.suppress(OSError):
            was_read_before = os.path.exists(os.path.join(self._copies(where), READ_STATE_NAME))
            return self.has_sessions(where) and (
                was_read_before or os.path.getsize(self.home_folder(where)) <= MAX_FIRST_READ_BYTES
            )
        return False

    def load(self, where: Where) -> Agent:
        """Return the agent with its home, our copies and ``where``."""
        return _load_strategy(
            self.part, self.strategy, self.home_folder(where), self._copies(where), where
        )

    def _copies(self, where: Where) -> str:
        return os.path.join(copies_folder(where), self.name)


def copies_folder(where: Where) -> str:
    """Return the folder of copies; in a model's sandbox, which can't write to our state folder, a temporary one."""
    own = os.path.join(where.state, COPIES_FOLDER_NAME)
    if not calling_session_id(where) or _is_writable(own):
        return own
    return _create_temporary_folder() or own


@functools.lru_cache(maxsize=4)
def _is_writable(folder: str) -> bool:
    import tempfile  # imported late, because it takes 3 ms and only another agent's shell needs it

    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def _create_temporary_folder() -> str:
    """Create a private folder that is removed at exit; return ``""`` on failure."""
    import atexit  # imported late, as above
    import tempfile

    for parent_folder in (os.environ.get("TMPDIR") or "/tmp", "/dev/shm"):  # noqa: S108 - a folder of our own in it
        with contextlib.suppress(OSError):
            folder = tempfile.mkdtemp(prefix="resume-hooks-", dir=parent_folder)
            atexit.register(removal.remove_if_possible, folder, parent_folder, follow_root=True)
            return folder
    return ""


@functools.lru_cache(maxsize=8)
def _load_strategy(part: str, strategy: str, home: str, copies: str, where: Where) -> Agent:
    """Create each agent only once per run, so that its cached folders serve many sessions."""
    make_agent = questions.agent_strategy.load(part, strategy)
    return make_agent(home, copies, where)


CLAUDE = AgentRow(
    CLAUDE_NAME,
    part="",
    home_variable="",
    home="",
    folders=(),
    file_pattern="(?!)",
    session_variable="CLAUDE_CODE_SESSION_ID",
    loss_note="",
    strategy="sessions.agents.claude:Claude",
    writer="derive.claude_writer:ClaudeWriter",
    defects="",
    is_loss="",
    model="derive.model.headless:make_headless_model",
)
"""Claude Code. Its transcripts are the common record format, so fsck checks them itself."""

OTHER_AGENT_ROWS = {
    name: AgentRow(name, *row) for name, row in AGENTS_OF_PARTS.items() if is_installed(row[0])
}
AGENT_ROWS = {CLAUDE_NAME: CLAUDE, **OTHER_AGENT_ROWS}
AGENT_NAMES = tuple(AGENT_ROWS)
RESUMABLE_AGENTS = tuple(row.name for row in AGENT_ROWS.values() if row.session_variable)
"""The agents that can continue a session."""

INCOMPLETE_AGENTS = frozenset(row.name for row in AGENT_ROWS.values() if row.loss_note)
"""The agents whose sessions are incomplete."""

LISTABLE_AGENTS = (CLAUDE_NAME, *INCOMPLETE_AGENTS)
"""The agents whose sessions a list offers. Claude Code opens them, or a fresh session made from their prompts."""


def list_other_agents(where: Where) -> list[Agent]:
    """Return the agents other than Claude Code that have a home on this machine."""
    return [row.load(where) for row in OTHER_AGENT_ROWS.values() if row.has_sessions(where)]


def list_agents(where: Where, name: str = ALL_AGENTS) -> list[Agent]:
    """Return the agents with a name, or all present ones, Claude Code first.

    Raise UsageError if the named agent has no home.
    """
    if name == ALL_AGENTS:
        return [row.load(where) for row in AGENT_ROWS.values() if row.has_sessions(where)]
    row = AGENT_ROWS[name]
    if row.has_sessions(where):
        return [row.load(where)]
    remedy = ""
    if row.home_variable:
        remedy = f"Set {row.home_variable} to where {name} keeps it."
    raise UsageError(f"{row.home_folder(where)} is not there", remedy)


def agent_of_path(path: str, where: Where) -> Agent:
    """Return the agent that a path belongs to."""
    return agent_with_name(agent_name_of_path(path, where), where)


def agent_name_of_path(path: str, where: Where) -> str:
    """Return the name of the agent that a path belongs to, by its file name or as one of our copies.

    Any other path belongs to Claude Code.
    """
    copies, name = os.path.join(copies_folder(where), ""), os.path.basename(path)
    if copies in path:
        copy_owner = os.path.abspath(path).removeprefix(copies).partition(os.sep)[0]
    else:
        copy_owner = ""
    return next(
        (
            row.name
            for row in OTHER_AGENT_ROWS.values()
            if re.fullmatch(row.file_pattern, name) or row.name == copy_owner
        ),
        CLAUDE_NAME,
    )


def agent_of_session(session: SessionFile, where: Where) -> Agent:
    """Return a session's agent."""
    return agent_with_name(session.agent, where)


def agent_with_name(name: str, where: Where) -> Agent:
    """Return the agent with a name, even without a home here; Claude Code for any other name."""
    return row_of_agent(name).load(where)


def row_of_agent(name: str) -> AgentRow:
    """Return an agent's row; Claude Code's for any other name, such as that of a removed part."""
    return AGENT_ROWS.get(name, CLAUDE)


def is_foreign(path: str, where: Where) -> bool:
    """Check whether a path belongs to another agent, or is our copy of its session."""
    return agent_name_of_path(path, where) != CLAUDE_NAME


def require_complete(session: SessionFile) -> None:
    """Raise UsageError for a session of which only the prompts exist."""
    if loss_note := row_of_agent(session.agent).loss_note:
        remedy = f"Continue from them in a fresh session: resume-hooks handoff {session.session_id}"
        raise UsageError(f"{session.session_id} can't be used for this. {loss_note}", remedy)


def read_ends(session: SessionFile, where: Where) -> HeadTail:
    """Return the two ends of any agent's session.

    Raise SessionNotFound if it can't be read.
    """
    return agent_of_session(session, where).read_ends(session.path)


def readable_session(path: str, where: Where) -> SessionFile:
    """Return any agent's session at a path, in the common record format.

    Raise SessionNotFound, NotATranscript or WriteFailed.
    """
    agent = agent_of_path(path, where)
    return agent.to_common_format(agent.open_session(path))


def original_path(path: str, where: Where) -> str:
    """Return the agent's own path for ``path``."""
    return agent_of_path(path, where).original_path(path)


def list_all_transcripts(where: Where) -> list[TranscriptFile]:
    """Return every transcript of every agent."""
    files = []
    for agent in list_agents(where):
        files.extend(agent.list_files())
    return files


@contextlib.contextmanager
def readable_path(path: str, where: Where) -> Iterator[str]:
    """Yield a path at which a file of ``list_all_transcripts`` can be read during the block.

    If it can't be converted, the path has no file.
    """
    with contextlib.ExitStack() as stack:
        try:
            copy_path = stack.enter_context(agent_of_path(path, where).open_briefly(path))
        except (SessionNotFound, NotATranscript, WriteFailed):
            copy_path = f"{path}.unreadable"
        yield copy_path


def find_other_agents_session(session_id: str, where: Where) -> SessionFile | None:
    """Return another agent's session with an id, in readable form; None for an unknown id.

    Raise the errors of ``readable_session``.
    """
    for agent in list_other_agents(where) if is_session_id(session_id) else []:
        if session := agent.store.find(session_id):
            return agent.to_common_format(session)
    return None


def folders_of_other_agents(where: Where) -> list[str]:
    """Return the folders with other agents' sessions and our copies of them."""
    folders = []
    for row in OTHER_AGENT_ROWS.values():
        for folder in row.folders:
            folders.append(os.path.join(row.home_folder(where), folder))
    return [*folders, *(os.path.join(copies_folder(where), name) for name in OTHER_AGENT_ROWS)]


def calling_session_id(where: Where) -> str:
    """Return the id of the other agent's session in whose shell we run, or ``""``."""
    candidate_ids = (
        where.environ.get(row.session_variable, "") for row in OTHER_AGENT_ROWS.values()
    )
    return next((session_id for session_id in candidate_ids if is_session_id(session_id)), "")


def stores_for_list(where: Where, *, all_agents: bool) -> list[SessionStore]:
    """Return the stores for a list to choose from, in order; incomplete sessions, which are the oldest, come last.

    The first store is Claude Code's; with ``all_agents`` it includes all agents that can continue a
    session.

    Incomplete sessions are left out if this list would have to read a large history first. A
    session's start and a search also read it.
    """
    resumable_stores = []
    for row in OTHER_AGENT_ROWS.values():
        if all_agents and row.session_variable and row.has_sessions(where):
            resumable_stores.append(row.load(where).store)
    own_store = store_of_agents(where, CLAUDE_NAME)
    return [
        _CombinedStore([own_store, *resumable_stores]) if resumable_stores else own_store,
        *(
            row.load(where).store
            for row in OTHER_AGENT_ROWS.values()
            if row.loss_note and row.is_quick_to_list(where)
        ),
    ]


def store_of_agents(where: Where, name: str = ALL_AGENTS) -> SessionStore:
    """Return the sessions of the named agents as one store."""
    stores = [agent.store for agent in list_agents(where, name)]
    if len(stores) == 1:
        return stores[0]
    return _CombinedStore(stores)


class _CombinedStore:
    def __init__(self, stores: Iterable[SessionStore]) -> None:
        self._stores = tuple(stores)

    def projects(self) -> list[str]:
        names: set[str] = set()
        for store in self._stores:
            names.update(store.projects())
        return sorted(names)

    def sessions(
        self, projects: Iterable[str] | None = None, prefix: str = ""
    ) -> list[SessionFile]:
        project_names = None if projects is None else list(projects)
        return sort_newest_first(
            session for store in self._stores for session in store.sessions(project_names, prefix)
        )

    def find(self, session_id: str) -> SessionFile | None:
        sessions = (store.find(session_id) for store in self._stores)
        return next((session for session in sessions if session is not None), None)

    def unreadable_folders(self) -> list[str]:
        folders: list[str] = []
        for store in self._stores:
            folders.extend(store.unreadable_folders())
        return folders

    def linked_paths(self, session_id: str = "") -> list[str]:
        paths: list[str] = []
        for store in self._stores:
            paths.extend(store.linked_paths(session_id))
        return paths
