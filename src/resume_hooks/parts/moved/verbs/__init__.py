"""The verbs of this part, as they are declared."""

from __future__ import annotations

from resume_hooks.cli.options import DRY_RUN, VerbOptions, argument, option


class RehomeOptions(VerbOptions, body="resume_hooks.parts.moved.verbs.rehome:rehome_folder"):
    """Give every session of FOLDER, which moved, a copy that is at home in NEW.

    Without FOLDER the former path of NEW is found by git's own files there, or by the commits and
    files that sessions name. Each copy holds its session's live conversation, like that of fork
    --home; the sessions themselves stay as they are. A session with a copy there gets no second
    one, so that an interrupted run can be run again. The exit code is 1 if one could not be copied.

    \b
    Examples:
      resume-hooks rehome --dry-run
      resume-hooks rehome ~/work/old-name --home ~/work/new-name
    """

    folder: str | None = argument(required=False)
    home: str | None = option(
        metavar="NEW", help="Its present path; by default the current folder."
    )
    dry_run: bool = DRY_RUN
