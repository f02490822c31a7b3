"""The verbs that continue a session."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks.cli.options import GO_ON, WAYS_TO_CONTINUE, OneSessionOptions, flag, option

_FORMER_WAY_NAMES = {"as-is": GO_ON, "smart-trim": "trim --smart"}
"""The names of ways to continue that version 0.2.0 used, with their current names."""


class _ContinuationChoice(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """The type of ``--way``. It accepts the names from version 0.2.0 too."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the chosen way to continue. Replace a name from version 0.2.0 with the current name."""
        return super().convert(_FORMER_WAY_NAMES.get(value, value), param, ctx)


class ResumeOptions(OneSessionOptions, function="resume_hooks.cli.resume:resume_session"):
    """Choose a session, compare what continuing it would cost, and continue.

    On a terminal, without an exact SESSION, you choose from a list that is searched as you type.
    Then you choose a way: continue the session, or a child of it. The client starts in the
    session's own folder. If that folder is gone, you choose another one for a child. A page that
    the verb share wrote is imported first, if you agree.

    Without a terminal, the first line says how full the session is and which way fits best. The
    command for each way follows, and the last line is the command that continues the session
    itself. --table adds estimates for each way, from the token counts of this session's own
    requests: the tokens in the context, the uncached tokens of the next turn, and the number of
    turns after which the way becomes cheaper than going on. docs/estimates.md explains the
    estimates.

    \b
    Examples:
      resume-hooks resume
      resume-hooks resume parser
      resume-hooks resume 5e12a303 --way trim
      resume-hooks resume latest --fork
      resume-hooks resume "Fix the parser" --json
      resume-hooks resume ~/Downloads/fix-the-parser-5e12a303.html
    """

    everywhere: bool = flag("--all", help="Choose among the sessions of every project.")
    way_to_continue: str | None = option(
        "--way",
        type=_ContinuationChoice(WAYS_TO_CONTINUE),
        help="Continue this way, without asking.",
    )
    must_fork: bool = flag(
        "--fork", help="Fork the session and continue in the fork, like --way fork."
    )
    show_table: bool = flag(
        "--table", help="Also show a table with estimates for all ways to continue."
    )
    copy_command: bool = flag("--copy", help="Copy the command instead of starting the client.")
    print_only: bool = flag("--print", help="Print the command instead of starting the client.")


class ContinueOptions(OneSessionOptions, function="resume_hooks.cli.continue_:continue_session"):
    """Start the client on the latest session of this folder, or on SESSION, in the session's own folder.

    If a running client has the session open, ask first. Without a terminal, only print the command.

    \b
    Examples:
      resume-hooks continue
      resume-hooks continue 5e12a303 --fork
      eval "$(resume-hooks continue --print)"
    """

    must_fork: bool = flag("--fork", help="Fork the session and continue in the fork.")
    print_only: bool = flag("--print", help="Print the command instead of starting the client.")
