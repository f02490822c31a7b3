"""The verbs of this part, as they are declared."""

from __future__ import annotations

from resume_hooks.cli.options import DRY_RUN, ChildOptions, SessionOptions, flag, option


class CheckpointOptions(SessionOptions, body="resume_hooks.parts.checkpoints.verbs.checkpoint:set_checkpoint"):
    """Mark the end of SESSION as the place that a rewind goes back to.

    The session itself is only read. One checkpoint is active a session; rewind uses it up. While the model works the
    mark stands after the last step that is whole.

    \b
    Examples:
      resume-hooks checkpoint -g "try the other parser"
      resume-hooks checkpoint 5e12a303 --yes
      resume-hooks checkpoint --show --json
      resume-hooks checkpoint --clear
    """

    goal: str = option("-g", default="", help="What is to be tried from here.")
    yes: bool = flag(help="Replace the checkpoint that is active.")
    show: bool = flag(help="Show the active one, mark nothing.")
    clear: bool = flag(help="Forget the active one.")
    dry_run: bool = DRY_RUN


class RewindOptions(ChildOptions, body="resume_hooks.parts.checkpoints.verbs.rewind:rewind_session"):
    """Make a session that stands at the checkpoint of SESSION again and holds your report of what came after.

    What came after is dropped from context, not from disk: the session itself is only read. Files, git and processes
    are not rewound; rewind-files brings files back. Where the checkpoint does not resolve any more, the new session
    starts at the root. The checkpoint is used up by it.

    A fork without a checkpoint goes back to where it left its parent, and needs no report: the new session is told
    what the fork found, with references. What the parent went on with since is not in it.

    \b
    Examples:
      resume-hooks rewind --report "the other parser is slower; stay with this one"
      resume-hooks rewind 5e12a303 --report - < report.md
      resume-hooks rewind --report "dead end" --dry-run
      resume-hooks rewind "Fix the parser · fork"
    """

    report: str = option(default="", metavar="TEXT|-", help="What came of it; - reads standard input.")
