"""The table of rules, in order of what is missed least: a target is met from the top of it."""

from __future__ import annotations

from resume_hooks.derive.trim.rules import (
    assistant,
    attached,
    failures,
    inputs,
    media,
    pasted,
    repeats,
    results,
    superseded,
    thinking,
)
from resume_hooks.derive.trim.rules.rule import Rule

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        superseded.RULE,
        repeats.RULE,
        failures.RULE,
        thinking.RULE,
        attached.RULE,
        media.RULE,
        results.RULE,
        inputs.RULE,
        pasted.RULE,
        assistant.RULE,
    )
}
