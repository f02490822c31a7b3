"""The command-line options of the verbs ``mark`` and ``back``."""

from __future__ import annotations

from resume_hooks.cli.options import DRY_RUN_OPTION, ChildOptions, OneSessionOptions, flag, option


class MarkOptions(OneSessionOptions, function="resume_hooks.parts.marks.verbs.mark:set_mark"):
    """Mark the end of SESSION as the place that `back` returns to.

    The session's file is not changed. A session has at most one active mark, and `back` deletes it.
    If the model is still working, the mark is set after its last complete step.

    \b
    Examples:
      resume-hooks mark -g "try the other parser"
      resume-hooks mark 5e12a303 --yes
      resume-hooks mark --show --json
      resume-hooks mark --clear
    """

    goal: str = option("-g", default="", help="What you want to try from here.")
    yes: bool = flag(help="Replace the active mark.")
    show: bool = flag(help="Only show the active mark.")
    clear: bool = flag(help="Forget the active mark.")
    dry_run: bool = DRY_RUN_OPTION


class BackOptions(ChildOptions, function="resume_hooks.parts.marks.verbs.back:go_back"):
    """Make a session that ends at the mark of SESSION, with your report of what came after the mark.

    The new session does not contain the conversation after the mark, but the file of SESSION is not
    changed. Files, git and processes stay as they are; rewind-files restores files. If the mark
    cannot be found, the new session contains only the report. The command deletes the mark.

    A fork without a mark goes back to the point where it branched off from its parent. It needs no
    report, because the new session gets a digest of what the fork found, with references. The new
    session does not contain newer turns of the parent.

    \b
    Examples:
      resume-hooks back --report "the other parser is slower; stay with this one"
      resume-hooks back 5e12a303 --report - < report.md
      resume-hooks back --report "dead end" --dry-run
      resume-hooks back "Fix the parser · fork"
    """

    report: str = option(
        default="", metavar="TEXT|-", help="The outcome. With -, it is read from standard input."
    )
