"""Start the client on a session, for all verbs: the client's folder, its config home, its environment.

Invariant: the client starts as if by hand, and inherits no variable from a client that runs this
process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_name_of_path, agent_with_name
from resume_hooks.system import programs
from resume_hooks.system.invocation import quote_word

CONFIG_VARIABLE = "CLAUDE_CONFIG_DIR"
_SET_BY_CLIENT = frozenset(
    {
        "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_EXECPATH", "CLAUDE_PID", "CLAUDE_EFFORT", "CLAUDE_PROJECT_DIR",
        "CLAUDE_ENV_FILE", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "AI_AGENT",
    }
)  # fmt: skip
"""The variables that a client sets for its programs (2.1.329).

CLAUDE_CODE_CHILD_SESSION would hide the session. Other variables with this prefix are the user's
settings.
"""


class ClientStart(NamedTuple):
    """A session to start in ``folder``; ``config_home`` is its config home unless it is ours.

    ``agent`` is the name of its agent.
    """

    session_id: str
    folder: str
    config_home: str = ""
    agent: str = CLAUDE_NAME

    @property
    def command(self) -> str:
        """The shell command that starts the client in the same way."""
        command = (
            agent_with_name(self.agent, Where()).resume_commands(self.session_id, self.folder).shell
        )
        if not self.config_home:
            return command
        folder_command, _, arguments = command.rpartition("claude ")
        is_default = self.config_home == Where({"HOME": os.path.expanduser("~")}).config
        if is_default:
            config_command = f"env -u {CONFIG_VARIABLE}"
        else:
            config_command = f"{CONFIG_VARIABLE}={quote_word(self.config_home)}"
        return f"{folder_command}{config_command} claude {arguments}"


def find_client_start(session_id: str, path: str, folder: str, where: Where) -> ClientStart:
    """Return the start of the session at ``path``, whose home folder is ``folder``.

    Other agents find their sessions from any folder.
    """
    agent = agent_name_of_path(path, where)
    if agent != CLAUDE_NAME:
        return ClientStart(session_id, folder if os.path.isdir(folder) else "", agent=agent)
    projects = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    config_home = os.path.dirname(projects)
    is_other_config = os.path.basename(projects) == "projects" and config_home != where.config
    return ClientStart(session_id, folder, config_home if is_other_config else "")


def make_client_environment(start: ClientStart, where: Where) -> dict[str, str]:
    """Return the environment of the client."""
    environment = {
        name: value for name, value in where.environ.items() if name not in _SET_BY_CLIENT
    } | {"PWD": start.folder or os.getcwd()}
    if start.config_home:
        # The default config home must not be named in the environment, because the client would
        # then look for .claude.json in it.
        environment.pop(CONFIG_VARIABLE, None)
        if start.config_home != Where(environment).config:
            environment[CONFIG_VARIABLE] = start.config_home
    return environment


def replace_process_by_client(start: ClientStart) -> NoReturn:
    """Replace this process with the client.

    Raise ResumeHooksError with the command if the client is missing or cannot start.
    """
    program, path, arguments = agent_with_name(start.agent, Where()).launch_command(
        start.session_id
    )
    if path is None:
        raise ResumeHooksError(
            f"{program} is not installed, or not on PATH", f"By hand: {start.command}"
        )
    sys.stdout.flush()
    try:
        with _restore_pipe_signal():
            programs.replace_process(
                path,
                arguments,
                start.folder or os.getcwd(),
                make_client_environment(start, Where()),
            )
    except OSError as error:
        raise ResumeHooksError(
            f"{program} can't be started in {start.folder}: {error.strerror}",
            f"By hand: {start.command}",
        ) from error


@contextlib.contextmanager
def _restore_pipe_signal() -> Iterator[None]:
    """Restore the default SIGPIPE in the block. Python ignores the signal, and the new program would inherit this."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    former_handler = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        yield
    finally:  # no program was started, so a closed pipe must not end this process
        signal.signal(signal.SIGPIPE, former_handler)
