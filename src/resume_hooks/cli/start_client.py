"""Start the client on a session, in the right folder and with the right environment.

The client starts as if the user had typed its command. If this process runs inside another client,
the new client does not inherit the variables that the other client has set.
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

CONFIG_FOLDER_VARIABLE = "CLAUDE_CONFIG_DIR"
_VARIABLES_SET_BY_CLIENT = frozenset(
    {
        "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_EXECPATH", "CLAUDE_PID", "CLAUDE_EFFORT", "CLAUDE_PROJECT_DIR",
        "CLAUDE_ENV_FILE", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "AI_AGENT",
    }
)  # fmt: skip
"""Variables that client 2.1.329 sets for the programs that it runs.

With CLAUDE_CODE_CHILD_SESSION, the client would hide the session. Other variables that begin with
CLAUDE are settings of the user, so the client inherits them.
"""


class ClientStart(NamedTuple):
    """How to start an agent's client on a session: in which folder and with which configuration folder.

    ``config_home`` is empty if the client needs the same configuration folder as this process.
    """

    session_id: str
    folder: str
    config_home: str = ""
    agent: str = CLAUDE_NAME

    @property
    def command(self) -> str:
        """The shell command that starts the client in this way."""
        command = (
            agent_with_name(self.agent, Where())
            .resume_commands(self.session_id, self.folder)
            .shell_command
        )
        if not self.config_home:
            return command
        folder_command, _, arguments = command.rpartition("claude ")
        is_default = self.config_home == Where({"HOME": os.path.expanduser("~")}).config
        if is_default:
            config_command = f"env -u {CONFIG_FOLDER_VARIABLE}"
        else:
            config_command = f"{CONFIG_FOLDER_VARIABLE}={quote_word(self.config_home)}"
        return f"{folder_command}{config_command} claude {arguments}"


def find_client_start(session_id: str, path: str, folder: str, where: Where) -> ClientStart:
    """Return how to start the client on the session in the file ``path``.

    ``folder`` is the folder in which Claude Code finds the session. Another agent finds its
    sessions from any folder, so its client starts in ``folder`` only if ``folder`` exists.
    """
    agent = agent_name_of_path(path, where)
    if agent != CLAUDE_NAME:
        return ClientStart(session_id, folder if os.path.isdir(folder) else "", agent=agent)
    projects = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    config_home = os.path.dirname(projects)
    is_other_config = os.path.basename(projects) == "projects" and config_home != where.config
    return ClientStart(session_id, folder, config_home if is_other_config else "")


def make_client_environment(start: ClientStart, where: Where) -> dict[str, str]:
    """Return the environment variables with which the client starts."""
    environment = {
        name: value for name, value in where.environ.items() if name not in _VARIABLES_SET_BY_CLIENT
    } | {"PWD": start.folder or os.getcwd()}
    if start.config_home:
        # For the default configuration folder the variable must not be set. If it is set, the
        # client looks for .claude.json in that folder, not next to it.
        environment.pop(CONFIG_FOLDER_VARIABLE, None)
        if start.config_home != Where(environment).config:
            environment[CONFIG_FOLDER_VARIABLE] = start.config_home
    return environment


def replace_process_with_client(start: ClientStart) -> NoReturn:
    """Replace this process with the client.

    Raise ResumeHooksError if the client is not installed or can't be started. The error's remedy is
    the command to type.
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
        with _restore_default_pipe_signal():
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
def _restore_default_pipe_signal() -> Iterator[None]:
    """Restore the default action for SIGPIPE in the with block.

    Python ignores SIGPIPE. Without this function, a program that replaces this process would ignore
    SIGPIPE too.
    """
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    previous_handler = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        yield
    finally:  # This line runs only if the client did not start. This process then ignores SIGPIPE again.
        signal.signal(signal.SIGPIPE, previous_handler)
