"""Ask the tmux around us to take a text, and whether its user came over ssh.

Invariant: a text that tmux passed on to a terminal is never confused with one that only tmux holds. Python 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping

from resume_hooks.system import subprocesses

IN_BUFFER = "in tmux alone: prefix ] pastes it"
"""Where a text is that tmux could hand to no terminal; the prefix is Ctrl+B unless it was changed."""


def load_buffer(text: str, env: Mapping[str, str], deadline: float) -> str:
    """Give ``text`` to tmux and, by it, to the terminal: ``tmux``; ``IN_BUFFER`` if no terminal can take it.

    ``""`` if tmux refused: it is gone, or older than 3.2 and knows no ``-w``. Then its buffer alone would not be the
    user's clipboard either, and OSC 52 has the better chance.
    """
    if _run(["load-buffer", "-w", "-"], env, deadline, text.encode("utf-8")) is None:
        return ""
    # load-buffer succeeds on a detached session, and on a terminal without a clipboard, too.
    client = _run(["display-message", "-p", "#{client_name}"], env, deadline)
    capabilities = _run(["show-messages", "-T"], env, deadline)
    return "tmux" if client and capabilities and _takes_clipboard(client.strip(), capabilities) else IN_BUFFER


def attached_over_ssh(env: Mapping[str, str], deadline: float) -> bool | None:
    """Whether the terminal attached last came over ssh; None if tmux does not know.

    A pane keeps the environment it was opened with; the session's follows each attach.
    """
    answer = _run(["show-environment", "SSH_CONNECTION"], env, deadline)
    return None if answer is None else answer.startswith("SSH_CONNECTION=")


def _takes_clipboard(client: str, capabilities: str) -> bool:
    """Whether ``client`` has the capability Ms, in tmux's list: a heading for each terminal, then its capabilities."""
    ours = False
    for line in capabilities.split("\n"):
        if line.startswith("Terminal "):
            ours = f" for {client}," in line
        elif ours and " Ms: " in line:
            return "[missing]" not in line
    return False


def _run(arguments: list[str], env: Mapping[str, str], deadline: float, data: bytes = b"") -> str | None:
    """The output of ``tmux ARGUMENTS``, None if it fails, is absent or takes too long."""
    out = subprocesses.output(["tmux", *arguments], env, deadline, data)
    return None if out is None else out.decode("utf-8", "replace")
