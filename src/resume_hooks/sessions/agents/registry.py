"""Which agents there are: this client and those of parts, a row each.

One that is not installed costs a look at a folder, and nothing of it is loaded.
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
COPIES = "mirrors"  # in the state folder: sessions of other agents in our form of record, a folder an agent
READ = "read.json"  # beside the copies of what was typed: how far it was read
FIRST_READ = (
    8 * 1024 * 1024
)  # bytes of what was typed for whose first reading a list waits: half a second


class AgentRow(NamedTuple):
    """An agent: the part that brings it, ``""`` for the core, and the fields of ``part.Agent``."""

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
        """Its folder; it may not exist."""
        if not self.home:
            return where.config
        if not self.home_variable:
            return os.path.join(where.config, self.home)
        default = os.path.join(where.environ.get("HOME") or os.path.expanduser("~"), self.home)
        return os.path.abspath(where.environ.get(self.home_variable) or default)

    def is_there(self, where: Where) -> bool:
        """Whether it has sessions on this machine, or we copies of what was typed.

        This client counts without any.
        """
        if not self.home:
            return True
        if self.home_variable:
            return os.path.isdir(self.home_in(where))
        return os.path.isfile(self.home_in(where)) or os.path.isdir(self._copies(where))

    def is_quick(self, where: Where) -> bool:
        """Whether it is there, and its prompts can be read in a moment, or were read before."""
        with contextlib.suppress(OSError):
            was_read = os.path.exists(os.path.join(self._copies(where), READ))
            return self.is_there(where) and (
                was_read or os.path.getsize(self.home_in(where)) <= FIRST_READ
            )
        return False

    def load(self, where: Where) -> Agent:
        """The agent with its sessions: by its home, our copies of them and ``where``."""
        return _load_strategy(
            self.part, self.strategy, self.home_in(where), self._copies(where), where
        )

    def _copies(self, where: Where) -> str:
        return os.path.join(copies_folder(where), self.name)


def copies_folder(where: Where) -> str:
    """The folder of copies; for a model in a sandbox, in which nothing is written to our state, one of this run."""
    own = os.path.join(where.state, COPIES)
    if not asking_session(where) or _takes_files(own):
        return own
    return _of_this_run() or own


@functools.lru_cache(maxsize=4)
def _takes_files(folder: str) -> bool:
    import tempfile  # 3 ms, for which another agent's shell alone waits

    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def _of_this_run() -> str:
    """A private folder that goes at the end; ``""`` where none can be made."""
    import atexit  # as above
    import tempfile

    for place in (os.environ.get("TMPDIR") or "/tmp", "/dev/shm"):  # noqa: S108 - a folder of our own in it
        with contextlib.suppress(OSError):
            made = tempfile.mkdtemp(prefix="resume-hooks-", dir=place)
            atexit.register(removal.remove_if_possible, made, place, follow_root=True)
            return made
    return ""


@functools.lru_cache(maxsize=8)
def _load_strategy(part: str, strategy: str, home: str, copies: str, where: Where) -> Agent:
    """One strategy a run, which need not look at everything again for each of many sessions."""
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
"""This client. Its transcripts are our form of record, so fsck looks at them by itself."""

OTHERS = {
    name: AgentRow(name, *row) for name, row in AGENTS_OF_PARTS.items() if is_installed(row[0])
}
AGENTS = {NAME: CLAUDE, **OTHERS}
NAMES = tuple(AGENTS)
RUNNING = tuple(row.name for row in AGENTS.values() if row.session_variable)
"""Those that can go on with a session."""

PARTIAL = frozenset(row.name for row in AGENTS.values() if row.left)
"""Those whose sessions are not whole."""

OPENED = (NAME, *PARTIAL)
"""Those of whose sessions a list is chosen from: this client goes on in them, or in a fresh one from their prompts."""


def other_agents(where: Where) -> list[Agent]:
    """The agents beside this client's own that have a home on this machine."""
    return [row.load(where) for row in OTHERS.values() if row.is_there(where)]


def agents(where: Where, name: str = ALL) -> list[Agent]:
    """The agents of a name, or all that are there, this client's first.

    UsageError where the named one has no home.
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
    """The agent that a path is of, which nobody need ask who has the session."""
    return agent_named(name_at(path, where), where)


def name_at(path: str, where: Where) -> str:
    """The name of the agent that a path is of, by its name or as one of our copies.

    This client's for any other.
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
    """The agent of a session."""
    return agent_named(session.agent, where)


def agent_named(name: str, where: Where) -> Agent:
    """The agent of a name, whether or not it has a home here; this client's for any other."""
    return row_of(name).load(where)


def row_of(name: str) -> AgentRow:
    """The row of an agent; this client's for any other name, as of a part that is gone."""
    return AGENTS.get(name, CLAUDE)


def is_foreign(path: str, where: Where) -> bool:
    """Whether a path is another agent's, or our copy of such a session."""
    return name_at(path, where) != NAME


def require_whole(session: SessionFile) -> None:
    """Raise UsageError for a session of which the prompts alone are left."""
    if left := row_of(session.agent).left:
        remedy = f"Go on from them in a fresh session: resume-hooks handoff {session.session_id}"
        raise UsageError(f"{session.session_id} can't be used for this. {left}", remedy)


def ends_of(session: SessionFile, where: Where) -> HeadTail:
    """What the two ends of a session tell, whoever wrote it.

    SessionNotFound if it can't be read.
    """
    return agent_of(session, where).ends(session.path)


def readable_session(path: str, where: Where) -> SessionFile:
    """The session at a path, whoever wrote it, in our form of record.

    SessionNotFound, NotATranscript, WriteFailed.
    """
    agent = agent_at(path, where)
    return agent.readable(agent.session(path))


def original_path(path: str, where: Where) -> str:
    """Where its agent has what lies at ``path``."""
    return agent_at(path, where).original(path)


def all_files(where: Where) -> list[TranscriptFile]:
    """Every transcript of every agent."""
    files = []
    for agent in agents(where):
        files.extend(agent.files())
    return files


@contextlib.contextmanager
def readable_briefly(path: str, where: Where) -> Iterator[str]:
    """A path at which a file of ``all_files`` can be read while the block lasts.

    Without a file if it can't be.
    """
    with contextlib.ExitStack() as closing:
        try:
            readable = closing.enter_context(agent_at(path, where).briefly(path))
        except (SessionNotFound, NotATranscript, WriteFailed):
            readable = f"{path}.unreadable"
        yield readable


def find_other_agents_session(session_id: str, where: Where) -> SessionFile | None:
    """The session of an id of another agent, in readable form; None for an unknown id.

    Errors as ``readable_session``.
    """
    for agent in other_agents(where) if is_session_id(session_id) else []:
        if session := agent.store.find(session_id):
            return agent.readable(session)
    return None


def homes_of_others(where: Where) -> list[str]:
    """The folders that sessions of other agents, and our copies of them, lie in."""
    own = []
    for one in OTHERS.values():
        for folder in one.folders:
            own.append(os.path.join(one.home_in(where), folder))
    return [*own, *(os.path.join(copies_folder(where), name) for name in OTHERS)]


def asking_session(where: Where) -> str:
    """The session of another agent whose shell we run in; ``""`` for none."""
    said = (where.environ.get(row.session_variable, "") for row in OTHERS.values())
    return next((session_id for session_id in said if is_session_id(session_id)), "")


def opened_stores(where: Where, *, everyone: bool) -> list[SessionStore]:
    """The stores of the sessions that a list is chosen from, one after another: those that were lost are the oldest.

    The first is this client's, or of ``everyone`` who can go on with a session.

    Without these where a list would be the first to read a large history; a start and a search do
    it, too.
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
    """The sessions of the agents of a name as one store."""
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
