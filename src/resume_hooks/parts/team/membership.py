"""The team that was joined: ``team/team.json`` of the state folder, and the mark by which hooks notice it.

It holds a service's name, this machine's id and the projects that are pushed; never a password or
an address.
"""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import re
import socket
import uuid

from resume_hooks import paths
from resume_hooks.errors import WriteFailed
from resume_hooks.parts.team.connect import TeamFailed, connected, service_named
from resume_hooks.parts.team.rows import login
from resume_hooks.parts.team.team_file import FILE, PUSHES, VERSION, Team, joined_team, team_folder
from resume_hooks.paths import Where, canonical_path
from resume_hooks.redaction.texts import redact
from resume_hooks.storage import removal, state_file
from resume_hooks.system.git_worktrees import common_git_folder
from resume_hooks.system.text import collapse_line, plain_line, replace_surrogates

_LONGEST_CONFIG = 256 * 1024
_LONGEST_REMOTE = 2_000
"""Characters of a remote's address that are looked at: the time that takes grows with their square."""
_CREDENTIALS = re.compile(r"[?#;].*\Z|(?:(?<=://).*|\A[^/]*)(?<!/)@(?=[^@/]+[:/])", re.DOTALL)
"""What may hold a password in an address, or a token: what stands before the host, and what follows the path."""

_REMOTE = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@]*@)?([^/:@]+)(?::\d+/|[:/])/*(.+?)(?:\.git)?/*\Z",
    re.IGNORECASE,
)
"""A remote's address: its host and path.

Scheme, user, password, port and the ending do not belong to a project's name.
"""


def required(where: Where) -> Team:
    """The team that was joined. TeamFailed without one."""
    team = joined_team(where)
    if team is None:
        raise TeamFailed("No team was joined", "resume-hooks team join SERVICE")
    return team


def join(service: str, where: Where, label: str = "") -> Team:
    """Enter the team of a libpq service, and remember it. TeamFailed, UsageError, WriteFailed."""
    known = joined_team(where)
    machine = known.machine if known else str(uuid.uuid4())
    with connected(service_named(service)) as db:
        db.run("select team.enter(%s, %s)", (machine, label or socket.gethostname()))
        name = db.value("select session_user::text", (), login) or ""
    same = known is not None and (known.service, known.login) == (service, name)
    team = Team(service, name, machine, known.projects if known and same else ())
    keep(team, where)
    return team


def keep(team: Team, where: Where) -> None:
    """Remember a team. WriteFailed."""
    row = {"version": VERSION, **team._asdict()}
    try:
        state_file.replace_state_file(
            os.path.join(team_folder(where), FILE),
            json.dumps(row, indent=2).encode() + b"\n",
            where,
        )
        mark = os.path.join(team_folder(where), PUSHES)
        if team.projects and not os.path.exists(mark):
            state_file.replace_state_file(mark, b"", where)
            os.utime(mark, (0, 0))
        elif not team.projects:
            with contextlib.suppress(FileNotFoundError):
                removal.remove_file(mark, where.state)
    except OSError as error:
        raise WriteFailed(
            f"The team could not be remembered: {error.strerror}", "Check the state folder."
        ) from error


def leave_team(where: Where) -> None:
    """Forget the team here, with what was pulled; what the team has stays with it."""
    removal.remove_if_possible(team_folder(where), where.state)


def project_of(cwd: str) -> str:
    """What a folder's project is called for everybody: its remote without credentials, else ``local/`` and its name."""
    git = common_git_folder(cwd) if cwd else ""
    config = configparser.RawConfigParser(strict=False, allow_no_value=True)
    with contextlib.suppress(OSError, ValueError, configparser.Error):
        config.read_string(
            paths.read_regular(os.path.join(git, "config"), _LONGEST_CONFIG).decode(
                "utf-8", "replace"
            )
        )
    remote = (config.get('remote "origin"', "url", fallback="") or "")[:_LONGEST_REMOTE]
    remote = remote.strip().strip('"')  # git quotes `#` and `;`
    named = _REMOTE.match(_CREDENTIALS.sub("", remote))
    if named and not remote.startswith(("/", ".", "file:")):
        return collapse_line(
            redact(plain_line(replace_surrogates(f"{named[1].lower()}/{named[2]}")))[0], 300
        )
    if os.path.basename(git) == ".git":
        root = os.path.dirname(git)
    else:
        root = canonical_path(cwd)
    return collapse_line(plain_line(replace_surrogates(f"local/{os.path.basename(root)}")), 300)
