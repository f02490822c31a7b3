"""The verbs of this part, as they are declared."""

from __future__ import annotations

from resume_hooks.cli.options import AGENT, VerbOptions, flag, option


class StatsOptions(VerbOptions, body="resume_hooks.parts.stats.verbs.stats:print_stats"):
    """Show turns and tokens by month, savings by children, hook times, and the size of our own folder.

    Tokens are those that the API counted, for sub-agents too; SENT are all tokens of requests,
    CACHED those of them out of the cache. A copy that the client's own --fork-session made counts
    again. SAVED is the size of the parent's context when it was left, less that of the child's
    first own request, summed over the MEASURED children, of which both are known. Hook times are those that the
    client wrote into transcripts: it writes few of hooks that say nothing. Months are in UTC.

    FIRST EDIT counts, after a start, a compaction, or in a child, the calls of tools up to the
    first that edits or writes a file (not one of the shell), over those that had one (EDITED).

    Each transcript is read once; its counts are kept, also when it is deleted.

    With --threshold it shows instead the cost of the sessions if each had been made smaller at a
    line of its own (config compaction trim@150k), and the assumptions.

    \b
    Examples:
      resume-hooks stats
      resume-hooks stats --all --since 30d
      resume-hooks stats --month --json
      resume-hooks stats --all --threshold
    """

    since: str | None = option(
        metavar="WHEN", help="From a day on, or so far back: 2026-01-31, 30d, 6m."
    )
    month: bool = flag(help="From the first day of this month on.")
    everywhere: bool = flag("--all", help="Every project, not only this one and its worktrees.")
    project: str | None = option(
        metavar="DIR", help="The project of another folder, which may be gone."
    )
    agent: str = AGENT
    threshold: bool = flag(
        help="What lines of 100k, 150k and 200k tokens would have cost, and none."
    )
