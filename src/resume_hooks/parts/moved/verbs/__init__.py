"""Define the command-line options of ``rehome``."""

from __future__ import annotations

from resume_hooks.cli.options import DRY_RUN_OPTION, VerbOptions, argument, option


class RehomeOptions(VerbOptions, function="resume_hooks.parts.moved.verbs.rehome:rehome_folder"):
    """Copy every session of FOLDER, which was moved, to its new path NEW (--home).

    Without FOLDER, the former path of NEW is found from git's own files in NEW, or from the commits
    and files that sessions mention. Each copy contains the live conversation of its session, as
    with fork --home. The sessions themselves are not changed. A session that has a copy in NEW is skipped, so an
    interrupted run can be repeated. The exit code is 1 if a session could not be copied.

    \b
    Examples:
      resume-hooks rehome --dry-run
      resume-hooks rehome ~/work/old-name --home ~/work/new-name
    """

    folder: str | None = argument(required=False)
    home: str | None = option(
        metavar="NEW", help="The folder's new path. The default is the current folder."
    )
    dry_run: bool = DRY_RUN_OPTION
