"""``smart-trim``: a child without what a model finds no longer needed; the plan is shown before anything is written."""

from __future__ import annotations

import sys
from typing import NamedTuple, Unpack

import click
from pydantic import ValidationError

from resume_hooks import settings
from resume_hooks.cli.child import answer, child_options, client_to_start, receipt_text, require_folder
from resume_hooks.cli.model_options import SummaryHow, model_name, progress, time_for
from resume_hooks.cli.output import located, locator_argument, say
from resume_hooks.cli.schema.children import SmartTrimForm, StoredPlan
from resume_hooks.derive.child.draft import draft
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import receipt
from resume_hooks.derive.model.claude_headless import ClaudeHeadless
from resume_hooks.derive.trim import plan as trimming
from resume_hooks.derive.trim.plan import SessionScan
from resume_hooks.derive.trim.preview import remarks, savings_data
from resume_hooks.derive.trim.smart import plan as smart
from resume_hooks.derive.trim.smart import preview as smart_view
from resume_hooks.derive.trim.smart.ask import ModelVerdicts, ask
from resume_hooks.derive.trim.smart.offer import CERTAIN, UNJUDGED, offer, smart_options
from resume_hooks.derive.trim.smart.plan import KIND, SmartPlan, Verdict, described, of_rules
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where, read_regular
from resume_hooks.sessions.project_folder import home_folder

LARGEST_PLAN = 16 * 1024 * 1024
"""Bytes of a plan that is given back."""

UNASKED = "Nobody can be asked here: add --yes, or write this very plan (--json > plan.json, --plan plan.json --yes)."


class SmartHow(SummaryHow):
    """The options of a smart trim."""

    keep_recent: int | None
    plan: str | None
    yes: bool


@click.command("smart-trim")
@locator_argument
@click.option("-p", "--prompt", default="", help="What to keep or to drop, in your words; it counts above all.")
@click.option("--keep-recent", type=click.IntRange(0, 10_000), help="Turns at the end that stay as they are.")
@click.option("--model", help="The model that chooses; by default the setting summary_model.")
@click.option("--timeout", type=click.IntRange(1), help="Seconds for all of it; by default summary_timeout.")
@click.option("--plan", type=click.Path(), help="Write the plan that --json printed; no model is asked.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@child_options
def command(locator: str | None, **how: Unpack[SmartHow]) -> Receipt:
    """Make a child of LOCATOR in which what is no longer needed is a placeholder that says what was there.

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
    client = client_to_start(how)
    stored = _stored(how)
    session = located(stored.parent_file if locator is None and stored else locator)
    scanned = trimming.read(session, settings.number("context_window"))
    require_folder(client, home_folder(scanned.glance))
    planned = _given_back(scanned, stored, how) if stored else _asked(scanned, how)
    decided = planned.decided
    wanted = decided.trim.pays and not how["dry_run"]
    asks = wanted and not how["yes"] and _can_ask(how)
    if asks:
        say(_plan_text(planned))
    agreed = wanted and (how["yes"] or (asks and click.confirm("\nWrite this child?", err=True)))
    made = smart.write(decided, Where()) if agreed else receipt(decided.trim)
    notes = [UNASKED] if wanted and not how["yes"] and not asks else []
    made = made._replace(warnings=(*made.warnings, *smart_view.warnings(decided, planned.asked), *notes))
    more = {"savings": savings_data(decided.trim), **smart_view.data(decided), "spent": planned.asked.spent._asdict()}
    return answer(KIND, made, how, client, more=more, text=lambda: _text(planned, made, seen=asks))


class _Planned(NamedTuple):
    """A plan, and what the model took for it."""

    decided: SmartPlan
    asked: ModelVerdicts


def _asked(scanned: SessionScan, how: SmartHow) -> _Planned:
    """Ask the model what may go."""
    name = model_name(how["model"])
    # What can't be a parent is refused before a model is paid for.
    draft(scanned.session, scanned.glance, KIND, Where(), how["output_dir"])
    rules = UNJUDGED if how["prompt"].strip() else CERTAIN
    offered = offer(scanned, smart_options(how["keep_recent"], settings.number("keep_recent"), rules), Where())
    limit, told = time_for(how["timeout"]), progress(name, quiet=how["as_json"])
    asked = ask(ClaudeHeadless(Where(), name), offered, how["prompt"], limit, told)
    verdicts = [*of_rules(offered), *asked.verdicts]
    return _Planned(smart.plan(offered, verdicts, Where(), how["output_dir"]), asked)


def _given_back(scanned: SessionScan, stored: SmartTrimForm, how: SmartHow) -> _Planned:
    """Take a plan that was printed before. UsageError where it is another session's."""
    if stored.parent_session_id != scanned.session.session_id:
        raise UsageError(
            f"The plan is of session {stored.parent_session_id}, not of {scanned.session.session_id}",
            "Leave the locator out, or name the session that the plan was made of.",
        )
    options = smart_options(stored.keep_recent, settings.number("keep_recent"), stored.rules)
    verdicts = [
        Verdict(row.record, tuple(row.address), row.digest, row.by, described(row.description), row.rationale)
        for row in stored.choices
    ]
    decided = smart.planned_before(scanned, options, verdicts, Where(), how["output_dir"])
    return _Planned(decided, ModelVerdicts())


def _stored(how: SmartHow) -> SmartTrimForm | None:
    """The plan of ``--plan``. UsageError for a file that holds none, and for options that it leaves no room for."""
    path = how["plan"]
    if path is None:
        return None
    if how["prompt"] or how["model"] or how["timeout"] or how["keep_recent"] is not None:
        raise UsageError("--plan is written as it is", "Leave -p, --model, --timeout and --keep-recent out.")
    way = "Make one: resume-hooks smart-trim --dry-run --json > plan.json"
    try:
        return StoredPlan.model_validate_json(read_regular(path, LARGEST_PLAN)).data
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", way) from error
    except ValidationError as error:
        raise UsageError(f"{path} is no plan as smart-trim --json prints it", way) from error


def _can_ask(how: SmartHow) -> bool:
    """Whether a person sees the plan and can say yes or no."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not how["as_json"]


def _text(planned: _Planned, made: Receipt, *, seen: bool) -> str:
    """The plan, unless it was ``seen`` already, and what came of it."""
    notes = [("note", words) for words in remarks(planned.decided.trim)]
    done = receipt_text(made, notes) if made.written else "Nothing was written."
    return done if seen else f"{_plan_text(planned)}\n\n{done}"


def _plan_text(planned: _Planned) -> str:
    return f"{smart_view.table(planned.decided)}\n\n{smart_view.spent_text(planned.asked.spent)}"
