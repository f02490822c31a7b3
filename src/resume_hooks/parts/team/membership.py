"""Join a team, record it, and leave it, in ``team/team.json`` in the state folder and in the mark file for hooks.

``team.json`` contains the service's name, this machine's id and the pushed projects. It never
contains a password or an address.
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
from resume_hooks.parts.team.connect import TeamFailed, connect_to_team, validate_service
from resume_hooks.parts.team.rows import parse_login
from resume_hooks.parts.team.team_file import (
    FILE,
    PUSH_MARK,
    VERSION,
    Team,
    joined_team,
    team_folder,
)
from resume_hooks.paths import Where, canonical_path
from resume_hooks.redaction.texts import redact
from resume_hooks.storage import removal, state_file
from resume_hooks.system.git_worktrees import common_git_folder
from resume_hooks.system.text import collapse_line, plain_line, replace_surrogates

_LONGEST_CONFIG = 256 * 1024
_LONGEST_REMOTE = 2_000
"""The maximum number of characters examined in a remote's address, because the regex takes quadratic time."""
_CREDENTIALS = re.compile(r"[?#;].*\Z|(?:(?<=://).*|\A[^/]*)(?<!/)@(?=[^@/]+[:/])", re.DOTALL)
"""Matches the parts of an address that may contain a password or token: before the host and after the path."""

_REMOTE_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@]*@)?([^/:@]+)(?::\d+/|[:/])/*(.+?)(?:\.git)?/*\Z",
    re.IGNORECASE,
)
"""Matches the host and path in a remote's address.

The scheme, user, password, port and file extension are not part of a project's name.
"""


def require_team(where: Where) -> Team:
    """Return the joined team. Raise TeamFailed if no team was joined."""
    team = joined_team(where)
    if team is None:
        raise TeamFailed("No team was joined", "resume-hooks team join SERVICE")
    return team


def join_team(service: str, where: Where, label: str = "") -> Team:
    """Join the team of a libpq service and record it. Raise TeamFailed, UsageError or WriteFailed."""
    previous = joined_team(where)
    machine = previous.machine if previous else str(uuid.uuid4())
    with connect_to_team(validate_service(service)) as db:
        db.run("select team.enter(%s, %s)", (machine, label or socket.gethostname()))
        name = db.value("select session_user::text", (), parse_login) or ""
    is_same = previous is not None and (previous.service, previous.login) == (service, name)
    team = Team(service, name, machine, previous.projects if previous and is_same else ())
    record_team(team, where)
    return team


def record_team(team: Team, where: Where) -> None:
    """Record a team. Raise WriteFailed."""
    row = {"version": VERSION, **team._asdict()}
    try:
        state_file.replace_state_file(
            os.path.join(team_folder(where), FILE),
            json.dumps(row, indent=2).encode() + b"\n",
            where,
        )
        mark = os.path.join(team_folder(where), PUSH_MARK)
        if team.projects and not os.path.exists(mark):
            state_file.replace_state_file(mark, b"", where)
            os.utime(mark, (0, 0))
        elif not team.projects:
            with contextlib.suppress(FileNotFoundError):
                removal.remove_file(mark, where.state)
    except OSError as error:
        raise WriteFailed(
            f"The team could not be recorded: {error.strerror}", "Check the state folder."
        ) from error


def leave_team(where: Where) -> None:
    """Remove the team's local state, including fetched copies. The server keeps its data."""
    removal.remove_if_possible(team_folder(where), where.state)


def project_name(cwd: str) -> str:
    """Return a project's shared name: its remote without credentials, or ``local/`` and the name of its folder."""
    git = common_git_folder(cwd) if cwd else ""
    config = configparser.RawConfigParser(strict=False, allow_no_value=True)
    with contextlib.suppress(OSError, ValueError, configparser.Error):
        config.read_string(
            paths.read_regular(os.path.join(git, "config"), _LONGEST_CONFIG).decode(
                "utf-8", "replace"
            )
        )
    remote = (config.get('remote "origin"', "url", fallback="") or "")[:_LONGEST_REMOTE]
    remote = remote.strip().strip('"')  # git quotes values that contain `#` or `;`
    match = _REMOTE_ADDRESS.match(_CREDENTIALS.sub("", remote))
    if match and not remote.startswith(("/", ".", "file:")):
        return collapse_line(
            redact(plain_line(replace_surrogates(f"{match[1].lower()}/{match[2]}")))[0], 300
        )
    if os.path.basename(git) == ".git":
        root = os.path.dirname(git)
    else:
        root = canonical_path(cwd)
    return collapse_line(plain_line(replace_surrogates(f"local/{os.path.basename(root)}")), 300)
