"""The verbs of this part, as they are declared."""

from __future__ import annotations

import click

from resume_hooks.cli.options import ChildOptions, flag, option


class SmartTrimOptions(ChildOptions, body="resume_hooks.parts.smart_trim.verbs.smart_trim:smart_trim"):
    """Make a child of SESSION in which what is no longer needed is a placeholder that says what was there.

    Rules give up what is certain: files read again or changed later, repeated outputs, failures that were mended,
    thinking of finished turns. A model, asked through the client without tools, chooses among the rest. With -p all
    of it is for the model to choose, as your words say. Your prompts, the recent turns and the last words of each turn
    stay. The plan is shown first; without a terminal nothing is written unless you say --yes.

    A dry run asks the model too, which costs. To write what it showed: --json > plan.json, then --plan plan.json.

    \b
    Examples:
      resume-hooks smart-trim
      resume-hooks smart-trim 5e12a303 -p "keep everything about the parser"
      resume-hooks smart-trim 5e12a303 --dry-run --json > plan.json
      resume-hooks smart-trim --plan plan.json --yes --start
    """

    prompt: str = option("-p", default="", help="What to keep or to drop, in your words; it counts above all.")
    keep_recent: int | None = option(type=click.IntRange(0, 10_000), help="Turns at the end that stay as they are.")
    model: str | None = option(help="The model that chooses; by default summary_model, of other agents their own.")
    timeout: int | None = option(type=click.IntRange(1), help="Seconds for all of it; by default summary_timeout.")
    plan: str | None = option(type=click.Path(), help="Write the plan that --json printed; no model is asked.")
    yes: bool = flag(help="Write without asking.")
