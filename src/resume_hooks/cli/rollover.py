"""``rollover``: a fresh child with a digest and a model's summary, or with its lineage alone."""

from __future__ import annotations

import click

from resume_hooks.cli.child import answer, make, require_client
from resume_hooks.cli.options import VerbOptions, as_one_value, child_options, locator_argument
from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import UsageError


@click.command("rollover")
@locator_argument
@click.option("-p", "--prompt", default="", help="What the summary should stress, in your words.")
@click.option("--quick", is_flag=True, help="Lineage only, no model is asked.")
@click.option("--with-summary", is_flag=True, help="The same as without --quick.")
@click.option("--model", help="The model that writes it; by default summary_model, of other agents their own.")
@click.option("--timeout", type=click.IntRange(1), help="Seconds for all of it; by default summary_timeout.")
@child_options
@as_one_value
def command(options: VerbOptions) -> Receipt:
    """Make a fresh session that holds the lineage of SESSION, a digest of it, and a summary by a model.

    The model is asked through the client, without tools and without a session. It reads SESSION in up to three parts;
    the session itself is only read. Where it gives no answer the digest alone is in the child, and the receipt says
    why. A dry run asks no model. The child is checked as read back before its id is printed.

    \b
    Examples:
      resume-hooks rollover
      resume-hooks rollover 5e12a303 -p "focus on the parser" --start
      resume-hooks rollover 5e12a303 --dry-run
      resume-hooks rollover "Fix the parser" --quick
    """
    if not options.quick:
        # What asks a model takes 100 ms to load, which a quick rollover need not wait for.
        from resume_hooks.cli.rollover_summary import carry_out

        return carry_out(options)
    if options.with_summary or options.prompt or options.model or options.timeout:
        raise UsageError("--quick asks no model", "Leave out --quick, or --with-summary, -p, --model and --timeout.")
    require_client(options)
    return answer(
        options,
        make(options, agents.fresh(options.located(foreign=True), options.where, output_dir=options.output_dir)),
    )
