"""``trim --smart``: write a child without the content that a model considers unnecessary.

The plan is shown before the child is written.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from resume_hooks.cli.child import (
    find_requested_model,
    get_model_time_limit,
    make_caller_for_new_child,
    make_model_call_reporter,
    print_child,
    receipt_text,
    refuse_start_in_other_folder,
    refuse_start_outside_project,
)
from resume_hooks.cli.options import find_option_name, locate_session
from resume_hooks.cli.output import print_text
from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trim.plan import TrimmableSession, TrimPlan, list_remarks
from resume_hooks.derive.verbs.trim import write_trim
from resume_hooks.errors import UsageError
from resume_hooks.parts.smart_trim import plan as smart
from resume_hooks.parts.smart_trim import preview
from resume_hooks.parts.smart_trim.ask_model import ModelResult, ask_model_about_offer
from resume_hooks.parts.smart_trim.offered_contents import (
    build_offer,
    build_smart_options,
    select_rule_names,
)
from resume_hooks.parts.smart_trim.plan import (
    CHILD_KIND,
    SmartPlan,
    Verdict,
    build_rule_verdicts,
    clean_description,
)
from resume_hooks.paths import Where, read_regular_file

if TYPE_CHECKING:
    from resume_hooks.parts.smart_trim.forms import PlannedTrim

# The attributes of the options that can't be combined with --smart.
ATTRIBUTES_INCOMPATIBLE_WITH_SMART = (
    "tool_names",
    "thresholds",
    "trimmed_answer_count",
    "target_tokens",
    "only_rules",
    "skipped_rules",
    "min_saved_tokens",
    "in_place",
    "force",
)
# Maximum number of bytes in the file that is given with ``--plan``.
MAX_PLAN_FILE_BYTES = 16 * 1024 * 1024
MISSING_TERMINAL_REMEDY = (
    "There is no terminal to confirm in: add --yes, or save the plan and apply it later "
    "(--json > plan.json, then --plan plan.json --yes)."
)


def refuse_options_that_need_smart(_: Any) -> NoReturn:
    """Raise UsageError, because an option of smart trims was given without ``--smart``."""
    raise UsageError(
        "-p, --model, --timeout, --plan and --yes work only with --smart",
        "Add --smart, or omit these options.",
    )


def smart_trim(options: Any) -> Receipt:
    """Show the plan of a smart trim, and write the child if the user agrees."""
    _refuse_options_incompatible_with_smart(options)
    refuse_start_in_other_folder(options)
    stored_plan = _read_stored_plan(options)
    if options.locator is None and stored_plan:
        locator = stored_plan.parent_file
    else:
        locator = options.locator
    session = locate_session(locator, options.where, allow_other_agents=True)
    trimmable = agents.read_trimmable_session(session, options.where)
    # Asking the model costs money, so a session from which no child of this kind can be made is
    # refused first.
    refuse_start_outside_project(
        options, agents.draft_child(session, CHILD_KIND, options.where, options.output_dir)
    )
    if stored_plan:
        smart_plan, result = _build_plan_from_stored_plan(trimmable, stored_plan, options)
    else:
        smart_plan, result = _ask_model(trimmable, options)
    plan_text = f"{preview.format_preview(smart_plan)}\n\n{preview.format_costs(result.costs)}"
    should_write = smart_plan.trim_plan.is_worthwhile and not options.dry_run
    ask_first = should_write and not options.yes and options.is_interactive

    def write_smart_child(_unused_plan: TrimPlan, where: Where) -> Receipt:
        return smart.write_smart_trim(smart_plan, where)

    receipt = write_trim(
        smart_plan.trim_plan,
        make_caller_for_new_child(options),
        partial(_is_plan_confirmed, options, plan_text),
        write_smart_child,
    ).receipt
    if should_write and not options.yes and not ask_first:
        notes = [MISSING_TERMINAL_REMEDY]
    else:
        notes = []
    receipt = receipt._replace(
        warnings=(*receipt.warnings, *preview.list_answer_warnings(smart_plan, result), *notes)
    )
    extra_fields = {
        "savings": smart_plan.trim_plan,
        "smart": {**preview.build_plan_data(smart_plan), "spent": result.costs},
    }

    def format_outcome() -> str:
        """Return the outcome as text. If the plan was not shown before, the text begins with the plan."""
        outcome = "Nothing was written."
        if receipt.written:
            outcome = receipt_text(
                receipt, [("note", words) for words in list_remarks(smart_plan.trim_plan)]
            )
        if ask_first:
            return outcome
        return f"{plan_text}\n\n{outcome}"

    return print_child(options, receipt, extra_fields, format_outcome)


def _is_plan_confirmed(options: Any, plan_text: str, _: TrimPlan) -> bool:
    """Check whether the user agrees to the plan, by ``--yes`` or by an answer in the terminal."""
    if options.yes:
        return True
    if not options.is_interactive:
        return False
    print_text(plan_text)
    return bool(options.confirm_write("Write this child?", ask_first=True))


def _refuse_options_incompatible_with_smart(options: Any) -> None:
    """Raise UsageError if an option for ordinary trims was given, or if ``--timeout`` is invalid."""
    get_source = click.get_current_context().get_parameter_source
    for attribute_name in ATTRIBUTES_INCOMPATIBLE_WITH_SMART:
        if get_source(attribute_name) is ParameterSource.COMMANDLINE:
            raise UsageError(
                f"{find_option_name(attribute_name)} and --smart can't be combined",
                "Give only one of these options.",
            )
    if options.timeout is not None and not re.fullmatch("[1-9][0-9]{0,5}", options.timeout):
        raise UsageError(
            f"--timeout must be a number of seconds, at least 1, not '{options.timeout}'",
            "Such as --timeout 60.",
        )


def _ask_model(trimmable: TrimmableSession, options: Any) -> tuple[SmartPlan, ModelResult]:
    model = find_requested_model(options.model, trimmable.session, options.where)
    prompt = options.prompt or ""
    offer = build_offer(
        trimmable,
        build_smart_options(options.kept_turn_count, select_rule_names(prompt)),
        options.where,
    )
    progress = make_model_call_reporter(model.name, quiet=options.as_json)
    result = ask_model_about_offer(
        model,
        offer,
        prompt,
        get_model_time_limit(options.timeout and int(options.timeout)),
        progress,
    )
    verdicts = [*build_rule_verdicts(offer), *result.verdicts]
    return smart.plan_smart_trim(offer, verdicts, options.where, options.output_dir), result


def _build_plan_from_stored_plan(
    trimmable: TrimmableSession, stored_plan: PlannedTrim, options: Any
) -> tuple[SmartPlan, ModelResult]:
    """Return a smart plan from a stored plan.

    Raise UsageError if the stored plan belongs to a different session.
    """
    if stored_plan.parent_session_id != trimmable.session.session_id:
        raise UsageError(
            (
                f"The plan belongs to session {stored_plan.parent_session_id}, not to "
                f"{trimmable.session.session_id}"
            ),
            "Leave the locator out, or name the plan's session.",
        )
    options_of_trim = build_smart_options(stored_plan.smart.keep_recent, stored_plan.smart.rules)
    verdicts = []
    for row in stored_plan.smart.choices:
        verdicts.append(
            Verdict(
                row.record,
                tuple(row.address),
                row.digest,
                row.by,
                clean_description(row.description),
                row.rationale,
            )
        )
    return smart.replan_smart_trim(
        trimmable, options_of_trim, verdicts, options.where, options.output_dir
    ), ModelResult()


def _read_stored_plan(options: Any) -> PlannedTrim | None:
    """Return the plan in the file that ``--plan`` names, or None if the option was not given.

    Raises UsageError if the file contains no plan, or if another option would change the plan.
    """
    path: str | None = options.plan
    if path is None:
        return None
    if options.prompt or options.model or options.timeout or options.kept_turn_count is not None:
        raise UsageError(
            "A plan from --plan can't be changed",
            "Leave -p, --model, --timeout and --keep-recent out.",
        )
    # These imports take 0.1 s, and only ``--plan`` needs them.
    from pydantic import ValidationError

    from resume_hooks.parts.smart_trim.forms import StoredPlan

    remedy = "Make one: resume-hooks trim --smart --dry-run --json > plan.json"
    try:
        return StoredPlan.model_validate_json(read_regular_file(path, MAX_PLAN_FILE_BYTES)).data
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", remedy) from error
    except ValidationError as error:
        raise UsageError(
            f"{path} is not a plan that trim --smart --json printed", remedy
        ) from error
