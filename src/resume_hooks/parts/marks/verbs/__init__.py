"""The verbs of this part, as they are declared."""

from __future__ import annotations

from resume_hooks.cli.options import DRY_RUN, ChildOptions, SessionOptions, flag, option


class MarkOptions(SessionOptions, body="resume_hooks.parts.marks.verbs.mark:set_mark"):
    """Mark the end of SESSION as the place that `back` goes back to.

    The session itself is only read. One mark is active a session; `back` uses it up. While the
    model works the mark stands after the last step that is whole.

    \b
    Examples:
      resume-hooks mark -g "try the other parser"
      resume-hooks mark 5e12a303 --yes
      resume-hooks mark --show --json
      resume-hooks mark --clear
    """

    goal: str = option("-g", default="", help="What is to be tried from here.")
    yes: bool = flag(help="Replace the mark that is active.")
    show: bool = flag(help="Show the active one, mark nothing.")
    clear: bool = flag(help="Forget the active one.")
    dry_run: bool = DRY_RUN


class BackOptions(ChildOptions, body="resume_hooks.parts.marks.verbs.back:go_back"):
    """Make a session that stands at the mark of SESSION again and holds your report of what came after.

    What came after is dropped from context, not from disk: the session itself is only read. Files,
    git and processes stay as they are; rewind-files brings files back. Where the mark can't be
    found any more, the new session holds the report alone. The mark is used up by it.

    A fork without a mark goes back to where it left its parent, and needs no report: the new
    session is told what the fork found, with references. What the parent went on with since is not
    in it.

    \b
    Examples:
      resume-hooks back --report "the other parser is slower; stay with this one"
      resume-hooks back 5e12a303 --report - < report.md
      resume-hooks back --report "dead end" --dry-run
      resume-hooks back "Fix the parser · fork"
    """

    report: str = option(
        default="", metavar="TEXT|-", help="What came of it; - reads standard input."
    )
