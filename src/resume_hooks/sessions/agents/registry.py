"""List all agents: Claude Code and the agents of the installed parts.

A part is loaded only if the folder of its agent exists on this machine.
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

NAME_FOR_ALL_AGENTS = "all"
# The subfolder of the state folder for copies of other agents' sessions in the common record
# format. It contains one folder for each agent.
COPIES_FOLDER_NAME = "mirrors"
# A file next to an agent's copies that records how far the agent's history of prompts was read.
READ_STATE_FILE_NAME = "read.json"
# Maximum size in bytes of a prompt history that is read for the first time while the user waits for
# a list. Reading this number of bytes takes half a second.
MAX_FIRST_READ_BYTES = 8 * 1024 * 1024


class AgentRow(NamedTuple):
    """The row of an agent in the table of agents.

    ``part`` is the part that implements the agent, or ``""`` for Claude Code. An entry point has the
    form ``module:function``. The other fields are described in ``part.Agent``.
    """

    name: str
    part: str
    home_variable: str
    default_home: str
    session_folders: tuple[str, ...]
    file_pattern: str
    session_id_variable: str
    loss_note: str
    strategy_entry_point: str
    writer_entry_point: str
    defect_finder_entry_point: str
    loss_checker_entry_point: str
    model_entry_point: str

    def agent_home(self, where: Where) -> str:
        """Return the folder (or the history file) of the agent, which may not exist."""
        if not self.default_home:
            return where.config
        if not self.home_variable:
            return os.path.join(where.config, self.default_home)
        default = os.path.join(
            where.environ.get("HOME") or os.path.expanduser("~"), self.default_home
        )
        return os.path.abspath(where.environ.get(self.home_variable) or default)

    def has_sessions(self, where: Where) -> bool:
        """Check whether this machine has sessions of the agent, or at least our copy of the agent's prompts.

        The result is always true for Claude Code.
        """
        if not self.default_home:
            return True
        if self.home_variable:
            return os.path.isdir(self.agent_home(where))
        return os.path.isfile(self.agent_home(where)) or os.path.isdir(self._copies_folder(where))

    def is_quick_to_list(self, where: Where) -> bool:
        """Check whether the agent has sessions that can be listed quickly.

        This is true if its prompt history is small or has already been read.
        """
        with contextlib.suppress(OSError):
            was_read_before = os.path.exists(
                os.path.join(self._copies_folder(where), READ_STATE_FILE_NAME)
            )
            return self.has_sessions(where) and (
                was_read_before or os.path.getsize(self.agent_home(where)) <= MAX_FIRST_READ_BYTES
            )
        return False

    def load_agent(self, where: Where) -> Agent:
        """Return the agent, loading its part if necessary."""
        return _load_agent(
            self.part,
            self.strategy_entry_point,
            self.agent_home(where),
            self._copies_folder(where),
            where,
        )

    def _copies_folder(self, where: Where) -> str:
        return os.path.join(copies_folder(where), self.name)


def copies_folder(where: Where) -> str:
    """Return the folder for our copies of other agents' sessions.

    Another agent's shell may run in a sandbox that can't write to our state folder. In this case,
    return a temporary folder.
    """
    own = os.path.join(where.state, COPIES_FOLDER_NAME)
    if not calling_session_id(where) or _is_writable(own):
        return own
    return _create_temporary_folder() or own


@functools.lru_cache(maxsize=4)
def _is_writable(folder: str) -> bool:
    import tempfile  # Imported here because the import takes 3 ms and only another agent's shell needs it.

    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def _create_temporary_folder() -> str:
    """Create a private folder that is removed when the process exits. Return ``""`` on failure."""
    import atexit  # Imported here because only another agent's shell needs these modules.
    import tempfile

    for parent_folder in (os.environ.get("TMPDIR") or "/tmp", "/dev/shm"):  # noqa: S108 - a folder of our own in it
        with contextlib.suppress(OSError):
            folder = tempfile.mkdtemp(prefix="resume-hooks-", dir=parent_folder)
            atexit.register(removal.remove_if_possible, folder, parent_folder, follow_root=True)
            return folder
    return ""


@functools.lru_cache(maxsize=8)
def _load_agent(
    part: str, strategy_entry_point: str, home: str, copies_folder: str, where: Where
) -> Agent:
    """Return the agent that is implemented by ``strategy_entry_point``, a class of the part.

    Each agent is created only once per process, so that its list of folders can be reused.
    """
    make_agent = questions.agent_strategy.load_function(part, strategy_entry_point)
    return make_agent(home, copies_folder, where)


CLAUDE_ROW = AgentRow(
    CLAUDE_NAME,
    part="",
    home_variable="",
    default_home="",
    session_folders=(),
    file_pattern="(?!)",
    session_id_variable="CLAUDE_CODE_SESSION_ID",
    loss_note="",
    strategy_entry_point="sessions.agents.claude:Claude",
    writer_entry_point="derive.claude_writer:ClaudeWriter",
    defect_finder_entry_point="",
    loss_checker_entry_point="",
    model_entry_point="derive.model.headless:make_headless_model",
)
"""The row of Claude Code. fsck checks Claude Code's transcripts directly, because they have the
common record format."""

OTHER_AGENT_ROWS = {
    name: AgentRow(name, *row) for name, row in AGENTS_OF_PARTS.items() if is_installed(row[0])
}
AGENT_ROWS = {CLAUDE_NAME: CLAUDE_ROW, **OTHER_AGENT_ROWS}
AGENT_NAMES = tuple(AGENT_ROWS)
RESUMABLE_AGENT_NAMES = tuple(row.name for row in AGENT_ROWS.values() if row.session_id_variable)
"""The names of the agents that can continue a session."""

NAMES_OF_AGENTS_WITH_PARTIAL_SESSIONS = frozenset(
    row.name for row in AGENT_ROWS.values() if row.loss_note
)
"""The names of the agents whose sessions are known only in part, for example only by their prompts.
"""

LISTABLE_AGENT_NAMES = (CLAUDE_NAME, *NAMES_OF_AGENTS_WITH_PARTIAL_SESSIONS)
"""The names of the agents whose sessions are listed without ``--agent``.

Claude Code can open its own sessions. For the other agents in this list, only the prompts exist,
and Claude Code can continue from these prompts in a fresh session.
"""


def list_other_agents(where: Where) -> list[Agent]:
    """Return the agents other than Claude Code that have sessions on this machine."""
    return [row.load_agent(where) for row in OTHER_AGENT_ROWS.values() if row.has_sessions(where)]


def list_agents(where: Where, name: str = NAME_FOR_ALL_AGENTS) -> list[Agent]:
    """Return the agent with this name, or all agents with sessions on this machine, Claude Code first.

    Raise UsageError if the agent with this name has no sessions on this machine.
    """
    if name == NAME_FOR_ALL_AGENTS:
        return [row.load_agent(where) for row in AGENT_ROWS.values() if row.has_sessions(where)]
    row = AGENT_ROWS[name]
    if row.has_sessions(where):
        return [row.load_agent(where)]
    remedy = ""
    if row.home_variable:
        remedy = f"Set {row.home_variable} to the folder of {name}."
    raise UsageError(f"{row.agent_home(where)} does not exist", remedy)


def agent_of_path(path: str, where: Where) -> Agent:
    """Return the agent to which the file at a path belongs."""
    return agent_with_name(agent_name_of_path(path, where), where)


def agent_name_of_path(path: str, where: Where) -> str:
    """Return the name of the agent to which the file at a path belongs.

    Another agent's file is recognized by its name, or by being in our folder of copies. All other
    files belong to Claude Code.
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
    """Return the agent to which a session belongs."""
    return agent_with_name(session.agent, where)


def agent_with_name(name: str, where: Where) -> Agent:
    """Return the agent with this name, even if it has no sessions on this machine.

    For an unknown name, return Claude Code.
    """
    return row_of_agent(name).load_agent(where)


def row_of_agent(name: str) -> AgentRow:
    """Return the row of the agent with this name.

    For an unknown name, such as that of an agent whose part was removed, return the row of Claude
    Code.
    """
    return AGENT_ROWS.get(name, CLAUDE_ROW)


def belongs_to_other_agent(path: str, where: Where) -> bool:
    """Check whether a path belongs to a session of an agent other than Claude Code, or to our copy of one."""
    return agent_name_of_path(path, where) != CLAUDE_NAME


def require_answers(session: SessionFile) -> None:
    """Raise UsageError if only the prompts of a session exist."""
    if loss_note := row_of_agent(session.agent).loss_note:
        remedy = f"Continue from its prompts in a fresh session: resume-hooks handoff {session.session_id}"
        raise UsageError(f"{session.session_id} contains no answers. {loss_note}", remedy)


def read_ends(session: SessionFile, where: Where) -> HeadTail:
    """Return the beginning and the end of a session of any agent.

    Raise SessionNotFound if the session can't be read.
    """
    return agent_of_session(session, where).read_ends(session.path)


def readable_session(path: str, where: Where) -> SessionFile:
    """Return the session at a path, which may belong to any agent, in the common record format.

    Raise SessionNotFound, NotATranscript or WriteFailed.
    """
    agent = agent_of_path(path, where)
    return agent.to_common_format(agent.open_session(path))


def original_path(path: str, where: Where) -> str:
    """Return the path of the agent's own file if ``path`` is our copy of it, or else ``path`` itself."""
    return agent_of_path(path, where).original_path(path)


def list_all_transcripts(where: Where) -> list[TranscriptFile]:
    """Return the transcripts of all agents with sessions on this machine."""
    files = []
    for agent in list_agents(where):
        files.extend(agent.list_files())
    return files


@contextlib.contextmanager
def readable_path(path: str, where: Where) -> Iterator[str]:
    """Yield a path at which a file from ``list_all_transcripts`` can be read during the block.

    If the file can't be converted, no file exists at the yielded path.
    """
    with contextlib.ExitStack() as stack:
        try:
            copy_path = stack.enter_context(agent_of_path(path, where).provide_copy_path(path))
        except (SessionNotFound, NotATranscript, WriteFailed):
            copy_path = f"{path}.unreadable"
        yield copy_path


def find_other_agents_session(session_id: str, where: Where) -> SessionFile | None:
    """Return another agent's session with this id in the common record format, or None.

    Raise SessionNotFound, NotATranscript or WriteFailed if the session can't be converted.
    """
    for agent in list_other_agents(where) if is_session_id(session_id) else []:
        if session := agent.store.find(session_id):
            return agent.to_common_format(session)
    return None


def folders_of_other_agents(where: Where) -> list[str]:
    """Return the folders of other agents' sessions and of our copies of them."""
    folders = []
    for row in OTHER_AGENT_ROWS.values():
        for folder in row.session_folders:
            folders.append(os.path.join(row.agent_home(where), folder))
    return [*folders, *(os.path.join(copies_folder(where), name) for name in OTHER_AGENT_ROWS)]


def calling_session_id(where: Where) -> str:
    """If this process runs in another agent's shell, return the id of that agent's session, else ``""``."""
    candidate_ids = (
        where.environ.get(row.session_id_variable, "") for row in OTHER_AGENT_ROWS.values()
    )
    return next((session_id for session_id in candidate_ids if is_session_id(session_id)), "")


def stores_for_list(where: Where, *, all_agents: bool) -> list[SessionStore]:
    """Return the stores with the sessions that a list offers, in the order of the list.

    The first store contains Claude Code's sessions. With ``all_agents``, it also contains the
    sessions of all other agents that can continue a session. The other stores contain sessions of
    which only the prompts exist. They come last, because these sessions are the oldest.

    A list never reads a large prompt history, because that takes too long. The store of such a
    history is left out until a session start or a search has read the history.
    """
    resumable_stores = []
    for row in OTHER_AGENT_ROWS.values():
        if all_agents and row.session_id_variable and row.has_sessions(where):
            resumable_stores.append(row.load_agent(where).store)
    own_store = store_of_agents(where, CLAUDE_NAME)
    return [
        _CombinedStore([own_store, *resumable_stores]) if resumable_stores else own_store,
        *(
            row.load_agent(where).store
            for row in OTHER_AGENT_ROWS.values()
            if row.loss_note and row.is_quick_to_list(where)
        ),
    ]


def store_of_agents(where: Where, name: str = NAME_FOR_ALL_AGENTS) -> SessionStore:
    """Return one store with the sessions of the agent ``name``, or with the sessions of all agents."""
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
