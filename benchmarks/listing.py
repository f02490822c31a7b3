"""Measure the time and memory of listing and finding sessions in a full home, next to the peer."""

from __future__ import annotations

from benchmarks.library import FILE_COUNT, Library, format_machine_load, print_note, print_row
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import all_sessions

PROJECT_FOLDER = "/home/user/project-3"
"""The folder of one of the home's twelve projects."""

TITLED_SESSION_NUMBER = 1_503
"""The number of the session to find. It is in PROJECT_FOLDER, and is neither one of the newest nor one of
the oldest sessions."""

ROUNDS = 5


def print_listings(library: Library, peer: str | None) -> None:
    """Print the rows for listing and finding sessions."""
    print(
        f"\n{f'listing and locators, {FILE_COUNT:,} files':52} {'ms':>8} {'cpu ms':>8}   {format_machine_load()}"
    )
    session_id = _find_titled_session_id(library)
    for what, arguments in (
        ("sessions of a project", ["sessions", "--project", PROJECT_FOLDER]),
        (
            "sessions of a project, --json --limit 0",
            ["sessions", "--project", PROJECT_FOLDER, "--limit", "0", "--json"],
        ),
        ("sessions --all", ["sessions", "--all"]),
        (
            "sessions --all --offset 2900 --json",
            ["sessions", "--all", "--offset", "2900", "--json"],
        ),
        ("info by id", ["info", session_id]),
        ("info by prefix", ["info", session_id[:8]]),
        ("info by title", ["info", f"Session {TITLED_SESSION_NUMBER}"]),
        ("info by a part of a title", ["info", f"ession {TITLED_SESSION_NUMBER}"]),
        ("info of a session that does not exist", ["info", "Session zqxjkv"]),
    ):
        run = library.bench.shell_run(*arguments)
        print_row(what, library.measure_medians(run, ROUNDS, may_fail="does not exist" in what), "")
    megabytes = library.measure_peak_megabytes(library.bench.shell_run("sessions", "--all"))
    print_note(f"memory of sessions --all {megabytes:,.0f} MB")
    if peer is None:
        return
    for what, words in (
        ("by id", session_id),
        ("by prefix", session_id[:8]),
        ("by title", f"Session {TITLED_SESSION_NUMBER}"),
        ("by a part of a title", f"ession {TITLED_SESSION_NUMBER}"),
    ):
        run = (
            [peer, "resolve", words, "--home", str(library.config), "--json"],
            b"",
            library.bench.work,
        )
        print_row(
            f"peer: aichat resolve {what}",
            library.measure_medians(run, 1, may_fail=True),
            "one round",
        )


def _find_titled_session_id(library: Library) -> str:
    """Return the id of the session with the number TITLED_SESSION_NUMBER in its title.

    The session is found by its place in the list, which begins with the newest session.
    """
    made = all_sessions(Where(library.env))
    return made[FILE_COUNT - 1 - TITLED_SESSION_NUMBER].session_id
