"""``rollover``: a fresh child with a digest and a model's summary, or with its lineage alone."""

from __future__ import annotations

from resume_hooks.cli.child import answer, make, require_client
from resume_hooks.cli.verbs.children import RolloverOptions
from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import UsageError


def rollover(options: RolloverOptions) -> Receipt:
    """Make the child, with a summary unless ``--quick``."""
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
