"""Define the command-line options of ``stats``."""

from __future__ import annotations

from resume_hooks.cli.options import AGENT_OPTION, VerbOptions, flag, option


class StatsOptions(VerbOptions, function="resume_hooks.parts.stats.verbs.stats:print_stats"):
    """Show turns and tokens by month, savings by children, hook durations, and the size of this plugin's folder.

    The numbers of tokens come from the API and include those of sub-agents. SENT is the number of
    tokens in requests, and CACHED the part that came from the cache. If the client made a copy with
    --fork-session, the copied records are counted twice. For each child, the saving is the size of
    the parent's context when the user left the parent, minus the size of the child's first request.
    MEASURED is the number of children for which both sizes are known, and SAVED is the sum of their
    savings. Hook durations come from transcripts, in which the client records few hooks without
    output. Months are in UTC.

    FIRST EDIT is the number of tool calls after a start, after a compaction or in a child, up to the
    first call that edits or writes a file. Shell commands are not counted as edits. EDITED is the
    number of cases with an edit.

    Each transcript is read only once. The counts are kept even if the transcript is deleted.

    With --threshold, the verb shows instead what the sessions would have cost if each had been
    reduced at a threshold (config compaction trim@150k), and the assumptions of this estimate.

    \b
    Examples:
      resume-hooks stats
      resume-hooks stats --all --since 30d
      resume-hooks stats --month --json
      resume-hooks stats --all --threshold
    """

    since: str | None = option(
        metavar="WHEN", help="Count from a day on, or for a period: 2026-01-31, 30d, 6m."
    )
    only_this_month: bool = flag("--month", help="Since the first day of this month.")
    everywhere: bool = flag(
        "--all", help="Count every project, not only this one and its worktrees."
    )
    project: str | None = option(
        metavar="DIR", help="The project of another folder. The folder need not exist any more."
    )
    agent: str = AGENT_OPTION
    compares_thresholds: bool = flag(
        "--threshold",
        help="Compare the costs with thresholds of 100k, 150k and 200k tokens, and without a threshold.",
    )
