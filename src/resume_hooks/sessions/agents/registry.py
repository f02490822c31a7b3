"""All agents, Claude Code and those of parts, as a table.

For an agent that is not installed only its folder is checked, and its part is not loaded.
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
from resume_hooks.sessions.agents.claude import NAME, Agent
from resume_hooks.sessions.session_files import SessionFile, SessionStore, newest_first
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.storage import removal
from resume_hooks.transcripts.head_tail import HeadTail

ALL = "all"
# in the state folder: other agents' sessions in the common record format, one folder per agent
COPIES = "mirrors"
READ = "read.json"  # beside the copies of prompts: how far the history was read
FIRST_READ = (
    8 * 1024 * 1024
)  # bytes of a prompt history that a list reads on first use: half a second


class AgentRow(NamedTuple):
    """An agent: its part (``""`` for the core), and the fields of ``part.Agent``."""

    name: str
    part: str
    home_variable: str
    home: str
    folders: tuple[str, ...]
    named: str
    session_variable: str
    left: str
    strategy: str
    writer: str
    defects: str
    is_loss: str
    model: str

    def home_in(self, where: Where) -> str:
        """Return the agent's folder, which may not exist."""
        if not self.home:
            return where.config
        if not self.home_variable:
            return os.path.join(where.config, self.home)
        default = os.path.join(where.environ.get("HOME") or os.path.expanduser("~"), self.home)
        return os.path.abspath(where.environ.get(self.home_variable) or default)

    def is_there(self, where: Where) -> bool:
        """Check whether the agent has sessions here, or we have copies of its prompts.

        Claude Code always counts.
        """
        if not self.home:
            return True
        if self.home_variable:
            return os.path.isdir(self.home_in(where))
        return os.path.isfile(self.home_in(where)) or os.path.isdir(self._copies(where))

    def is_quick(self, where: Where) -> bool:
        """Check whether the agent has sessions, and its prompts are quick to read or were read before."""
        with contextlib.suppress(OSError):
            was_read = os.path.exists(os.path.join(self._copies(where), READ))
            return self.is_there(where) and (
                was_read or os.path.getsize(self.home_in(where)) <= FIRST_READ
            )
        return False

    def load(self, where: Where) -> Agent:
        """Return the agent with its home, our copies and ``where``."""
        return _load_strategy(
            self.part, self.strategy, self.home_in(where), self._copies(where), where
        )

    def _copies(self, where: Where) -> str:
        return os.path.join(copies_folder(where), self.name)


def copies_folder(where: Where) -> str:
    """Return the folder of copies; in a model's sandbox, which can't write to our state folder, a temporary one."""
    own = os.path.join(where.state, COPIES)
    if not asking_session(where) or _takes_files(own):
        return own
    return _of_this_run() or own


@functools.lru_cache(maxsize=4)
def _takes_files(folder: str) -> bool:
    import tempfile  # takes 3 ms, only in another agent's shell

    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def _of_this_run() -> str:
    """Create a private folder that is removed at exit; return ``""`` on failure."""
    import atexit  # imported late, as above
    import tempfile

    for place in (os.environ.get("TMPDIR") or "/tmp", "/dev/shm"):  # noqa: S108 - a folder of our own in it
        with contextlib.suppress(OSError):
            made = tempfile.mkdtemp(prefix="resume-hooks-", dir=place)
            atexit.register(removal.remove_if_possible, made, place, follow_root=True)
            return made
    return ""


@functools.lru_cache(maxsize=8)
def _load_strategy(part: str, strategy: str, home: str, copies: str, where: Where) -> Agent:
    """Create each agent once per run, so that it caches its folders across many sessions."""
    make_agent = questions.agent_strategy.load(part, strategy)
    return make_agent(home, copies, where)


CLAUDE = AgentRow(
    NAME,
    part="",
    home_variable="",
    home="",
    folders=(),
    named="(?!)",
    session_variable="CLAUDE_CODE_SESSION_ID",
    left="",
    strategy="sessions.agents.claude:Claude",
    writer="derive.claude_writer:ClaudeWriter",
    defects="",
    is_loss="",
    model="derive.model.headless:headless_model",
)
"""Claude Code. Its transcripts are the common record format, so fsck checks them itself."""

OTHERS = {
    name: AgentRow(name, *row) for name, row in AGENTS_OF_PARTS.items() if is_installed(row[0])
}
AGENTS = {NAME: CLAUDE, **OTHERS}
NAMES = tuple(AGENTS)
RUNNING = tuple(row.name for row in AGENTS.values() if row.session_variable)
"""The agents that can continue a session."""

PARTIAL = frozenset(row.name for row in AGENTS.values() if row.left)
"""The agents whose sessions are incomplete."""

OPENED = (NAME, *PARTIAL)
"""The agents whose sessions a list offers: Claude Code opens them, or a fresh session from their prompts."""


def other_agents(where: Where) -> list[Agent]:
    """Return the agents other than Claude Code that have a home on this machine."""
    return [row.load(where) for row in OTHERS.values() if row.is_there(where)]


def agents(where: Where, name: str = ALL) -> list[Agent]:
    """Return the agents with a name, or all present ones, Claude Code first.

    Raise UsageError if the named agent has no home.
    """
    if name == ALL:
        return [row.load(where) for row in AGENTS.values() if row.is_there(where)]
    row = AGENTS[name]
    if row.is_there(where):
        return [row.load(where)]
    remedy = ""
    if row.home_variable:
        remedy = f"Set {row.home_variable} to where {name} keeps it."
    raise UsageError(f"{row.home_in(where)} is not there", remedy)


def agent_at(path: str, where: Where) -> Agent:
    """Return the agent that a path belongs to."""
    return agent_named(name_at(path, where), where)


def name_at(path: str, where: Where) -> str:
    """Return the name of the agent that a path belongs to, by its file name or as one of our copies.

    Any other path belongs to Claude Code.
    """
    copies, name = os.path.join(copies_folder(where), ""), os.path.basename(path)
    if copies in path:
        copied = os.path.abspath(path).removeprefix(copies).partition(os.sep)[0]
    else:
        copied = ""
    return next(
        (
            one.name
            for one in OTHERS.values()
            if re.fullmatch(one.named, name) or one.name == copied
        ),
        NAME,
    )


def agent_of(session: SessionFile, where: Where) -> Agent:
    """Return a session's agent."""
    return agent_named(session.agent, where)


def agent_named(name: str, where: Where) -> Agent:
    """Return the agent with a name, even without a home here; Claude Code for any other name."""
    return row_of(name).load(where)


def row_of(name: str) -> AgentRow:
    """Return an agent's row; Claude Code's for any other name, such as that of a removed part."""
    return AGENTS.get(name, CLAUDE)


def is_foreign(path: str, where: Where) -> bool:
    """Check whether a path belongs to another agent, or is our copy of its session."""
    return name_at(path, where) != NAME


def require_whole(session: SessionFile) -> None:
    """Raise UsageError for a session of which only the prompts exist."""
    if left := row_of(session.agent).left:
        remedy = f"Go on from them in a fresh session: resume-hooks handoff {session.session_id}"
        raise UsageError(f"{session.session_id} can't be used for this. {left}", remedy)


def ends_of(session: SessionFile, where: Where) -> HeadTail:
    """Return the two ends of any agent's session.

    Raise SessionNotFound if it can't be read.
    """
    return agent_of(session, where).ends(session.path)


def readable_session(path: str, where: Where) -> SessionFile:
    """Return any agent's session at a path, in the common record format.

    Raise SessionNotFound, NotATranscript or WriteFailed.
    """
    agent = agent_at(path, where)
    return agent.readable(agent.session(path))


def original_path(path: str, where: Where) -> str:
    """Return the agent's own path for ``path``."""
    return agent_at(path, where).original(path)


def all_files(where: Where) -> list[TranscriptFile]:
    """Return every transcript of every agent."""
    files = []
    for agent in agents(where):
        files.extend(agent.files())
    return files


@contextlib.contextmanager
def readable_briefly(path: str, where: Where) -> Iterator[str]:
    """Yield a path at which a file of ``all_files`` can be read during the block.

    If it can't be converted, the path has no file.
    """
    with contextlib.ExitStack() as closing:
        try:
            readable = closing.enter_context(agent_at(path, where).briefly(path))
        except (SessionNotFound, NotATranscript, WriteFailed):
            readable = f"{path}.unreadable"
        yield readable


def find_other_agents_session(session_id: str, where: Where) -> SessionFile | None:
    """Return another agent's session with an id, in readable form; None for an unknown id.

    Raise the errors of ``readable_session``.
    """
    for agent in other_agents(where) if is_session_id(session_id) else []:
        if session := agent.store.find(session_id):
            return agent.readable(session)
    return None


def homes_of_others(where: Where) -> list[str]:
    """Return the folders with other agents' sessions and our copies of them."""
    own = []
    for one in OTHERS.values():
        for folder in one.folders:
            own.append(os.path.join(one.home_in(where), folder))
    return [*own, *(os.path.join(copies_folder(where), name) for name in OTHERS)]


def asking_session(where: Where) -> str:
    """Return the id of the other agent's session in whose shell we run, or ``""``."""
    said = (where.environ.get(row.session_variable, "") for row in OTHERS.values())
    return next((session_id for session_id in said if is_session_id(session_id)), "")


def opened_stores(where: Where, *, everyone: bool) -> list[SessionStore]:
    """Return the stores for a list to choose from, in order; incomplete sessions, which are the oldest, come last.

    The first store is Claude Code's; for ``everyone`` it includes all agents that can continue a
    session.

    Incomplete sessions are left out if this list would be the first to read a large history; a
    start and a search read it as well.
    """
    running = []
    for row in OTHERS.values():
        if everyone and row.session_variable and row.is_there(where):
            running.append(row.load(where).store)
    own = store_of(where, NAME)
    return [
        _Stores([own, *running]) if running else own,
        *(row.load(where).store for row in OTHERS.values() if row.left and row.is_quick(where)),
    ]


def store_of(where: Where, name: str = ALL) -> SessionStore:
    """Return the sessions of the named agents as one store."""
    stores = [agent.store for agent in agents(where, name)]
    if len(stores) == 1:
        return stores[0]
    return _Stores(stores)


class _Stores:
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
        wanted = None if projects is None else list(projects)
        return newest_first(
            session for store in self._stores for session in store.sessions(wanted, prefix)
        )

    def find(self, session_id: str) -> SessionFile | None:
        sessions = (store.find(session_id) for store in self._stores)
        return next((session for session in sessions if session is not None), None)

    def hidden(self) -> list[str]:
        places: list[str] = []
        for store in self._stores:
            places.extend(store.hidden())
        return places

    def linked(self, session_id: str = "") -> list[str]:
        places: list[str] = []
        for store in self._stores:
            places.extend(store.linked(session_id))
        return places
