"""Join and leave a team, and record the joined team on this machine.

The record is the file ``team/team.json`` in the state folder. It contains the name of the libpq
service, the id of this machine and the pushed projects, but never a password or an address. In
addition, an empty mark file tells the hooks to push each turn.
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
from resume_hooks.parts.team.connect import (
    TeamRequestFailed,
    connect_to_team,
    validate_service_name,
)
from resume_hooks.parts.team.rows import parse_login
from resume_hooks.parts.team.team_file import (
    PUSH_ENABLED_FILE_NAME,
    TEAM_FILE,
    TEAM_FILE_VERSION,
    Team,
    find_team_folder,
    read_team,
)
from resume_hooks.paths import Where, canonical_path
from resume_hooks.redaction.texts import redact
from resume_hooks.storage import removal, state_file
from resume_hooks.system.git_worktrees import common_git_folder
from resume_hooks.system.text import collapse_line, plain_line, replace_surrogates

_MAX_CONFIG_BYTES = 256 * 1024
_MAX_REMOTE_ADDRESS_CHARACTERS = 2_000
"""The maximum number of characters to examine in a remote's address. The time that the regular
expressions take grows with the square of this number."""
_CREDENTIALS_PATTERN = re.compile(
    r"[?#;].*\Z|(?:(?<=://).*|\A[^/]*)(?<!/)@(?=[^@/]+[:/])", re.DOTALL
)
"""Matches the parts of an address that may contain a password or token: user information before the
host, and a query or fragment after the path."""

_REMOTE_ADDRESS_PATTERN = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@]*@)?([^/:@]+)(?::\d+/|[:/])/*(.+?)(?:\.git)?/*\Z",
    re.IGNORECASE,
)
"""Matches the host and path in a remote's address.

The scheme, user, password, port and file extension are not part of a project's name.
"""


def get_joined_team(where: Where) -> Team:
    """Return the joined team. Raise TeamRequestFailed if no team was joined."""
    team = read_team(where)
    if team is None:
        raise TeamRequestFailed("No team was joined", "resume-hooks team join SERVICE")
    return team


def join_team(service: str, where: Where, label: str = "") -> Team:
    """Join the team whose database a libpq service describes, and record the team on this machine.

    Raise UsageError for an invalid service name, TeamRequestFailed if the database does not accept
    the connection, and WriteFailed if the team cannot be recorded.
    """
    previous_team = read_team(where)
    machine = previous_team.machine if previous_team else str(uuid.uuid4())
    with connect_to_team(validate_service_name(service)) as db:
        db.run_statement("select team.enter(%s, %s)", (machine, label or socket.gethostname()))
        name = db.fetch_value("select session_user::text", (), parse_login) or ""
    is_same = previous_team is not None and (previous_team.service, previous_team.login) == (
        service,
        name,
    )
    team = Team(service, name, machine, previous_team.projects if previous_team and is_same else ())
    record_team(team, where)
    return team


def record_team(team: Team, where: Where) -> None:
    """Record the joined team on this machine. Raise WriteFailed if it cannot be recorded."""
    row = {"version": TEAM_FILE_VERSION, **team._asdict()}
    try:
        state_file.replace_state_file(
            os.path.join(find_team_folder(where), TEAM_FILE),
            json.dumps(row, indent=2).encode() + b"\n",
            where,
        )
        push_mark = os.path.join(find_team_folder(where), PUSH_ENABLED_FILE_NAME)
        if team.projects and not os.path.exists(push_mark):
            state_file.replace_state_file(push_mark, b"", where)
            os.utime(push_mark, (0, 0))
        elif not team.projects:
            with contextlib.suppress(FileNotFoundError):
                removal.remove_file(push_mark, where.state)
    except OSError as error:
        raise WriteFailed(
            f"Could not save the team settings: {error.strerror}", "Check the state folder."
        ) from error


def leave_team(where: Where) -> None:
    """Remove the team's files from this machine, including fetched copies of sessions.

    The data on the server is not removed.
    """
    removal.remove_if_possible(find_team_folder(where), where.state)


def read_project_name(cwd: str) -> str:
    """Return the name under which all members of the team know the project in the folder ``cwd``.

    The name is the address of the git remote ``origin`` without credentials. If that remote does
    not exist or its address has no host, the name is ``local/`` and the name of the project's
    folder.
    """
    git_folder = common_git_folder(cwd) if cwd else ""
    config = configparser.RawConfigParser(strict=False, allow_no_value=True)
    with contextlib.suppress(OSError, ValueError, configparser.Error):
        config.read_string(
            paths.read_regular_file(os.path.join(git_folder, "config"), _MAX_CONFIG_BYTES).decode(
                "utf-8", "replace"
            )
        )
    remote_url = (config.get('remote "origin"', "url", fallback="") or "")[
        :_MAX_REMOTE_ADDRESS_CHARACTERS
    ]
    remote_url = remote_url.strip().strip('"')  # git quotes a value that contains `#` or `;`.
    match = _REMOTE_ADDRESS_PATTERN.match(_CREDENTIALS_PATTERN.sub("", remote_url))
    if match and not remote_url.startswith(("/", ".", "file:")):
        return collapse_line(
            redact(plain_line(replace_surrogates(f"{match[1].lower()}/{match[2]}")))[0], 300
        )
    if os.path.basename(git_folder) == ".git":
        root = os.path.dirname(git_folder)
    else:
        root = canonical_path(cwd)
    return collapse_line(plain_line(replace_surrogates(f"local/{os.path.basename(root)}")), 300)
