#!/usr/bin/env python3
"""Convert the default rules of gitleaks to the data file of this plugin's scanner.

Usage: ``make_secret_rules.py gitleaks.toml VERSION``. gitleaks
(https://github.com/gitleaks/gitleaks) is under the MIT licence, which ``redaction/rules.json``
repeats.

The rules have two forms. A token rule describes a token with a distinctive shape (``ghp_`` and 36
characters). Its expression is converted from Go's dialect to Python's. An assigned rule requires a
vendor's name before an assignment, and a value of a simple shape. The name and the value are
separated, because this plugin's scanner starts at the value.

The two generic rules of gitleaks, and rules that need a file's name, are left out. The plugin's own
generic rules are in ``assignments.py``, ``passwords.py`` and ``extra_token_rules.py``.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

RULES_FILE = Path(__file__).parent.parent / "src" / "resume_hooks" / "redaction" / "rules.json"

OMITTED_RULE_IDS = {
    "generic-api-key", "database-password", "curl-auth-header", "curl-auth-user", "private-key", "jwt", "jwt-base64",
    "kubernetes-secret-yaml", "nuget-config-password", "pkcs12-file", "freemius-secret-key", "sidekiq-sensitive-url",
    "sidekiq-secret", "heroku-api-key", "openai-api-key", "anthropic-api-key", "anthropic-admin-api-key",
    "azure-ad-client-secret", "slack-legacy-workspace-token", "hashicorp-tf-password", "vault-service-token",
    "hubspot-api-key", "kucoin-secret-key", "snyk-api-token", "squarespace-access-token", "huggingface-access-token",
    "lob-pub-api-key", "mailgun-pub-key", "new-relic-user-api-id", "dropbox-api-token", "linkedin-client-secret",
}  # fmt: skip
"""Rules of gitleaks that are left out.

Some of them find whole files, public values, or UUIDs and other short simple values. This plugin
replaces the others with rules of its own.
"""

PUBLIC_RULE_SUFFIXES = ("-client-id", "-public-key", "-publishable-key", "-access-id")
"""A rule whose name has one of these suffixes finds values that are not secret."""

TOKEN_KEYWORDS = {
    "twilio-api-key": ["sk"],
    "harness-api-key": ["pat.", "sat."],
    "octopus-deploy-api-key": ["api-"],
    "airtable-personnal-access-token": ["pat"],
    "sourcegraph-access-token": ["sgp_"],
    "facebook-access-token": [],
    "intra42-client-secret": ["s-s4t2"],
    "cloudflare-origin-ca-key": ["v1.0-"],
    "microsoft-teams-webhook": ["incomingwebhook"],
}
"""For some rules, keywords that are part of the secret itself.

For these rules, gitleaks' own keywords may be far from the secret, so they are replaced.
"""

_ASSIGNED_RULE_PATTERN = re.compile(
    r"^(?:\[\\w\.-\]\{0,50\}\?)?\(\?i(?:\)|:)\[\\w\.-\]\{0,50\}\?\(\?:(?P<words>.*?)\)\(\?:\[ \\t\\w\.-\]\{0,20\}\)"
    r"\[\\s'\"\]\{0,3\}\)?\(\?:=\|>\|:\{1,3\}=\|\\\|\\\|\|:\|=>\|\\\?=\|,\)\[\\x60'\"\\s=\]\{0,5\}(?P<value>.*)$"
)
_TOKEN_END_PATTERN = re.compile(r"\(\?:\[\\x60'\"\\s;\]\|\\\\\[nr\]\|\$(?:\|\\b)?\)")
_END_LOOKAHEAD = "(?![A-Za-z0-9])"


def main(rules_path: str, gitleaks_version: str) -> None:
    """Write the data file. ``rules_path`` is the file with gitleaks' rules of ``gitleaks_version``."""
    raw = Path(rules_path).read_bytes()
    tokens: list[dict[str, Any]] = []
    assigned: list[dict[str, Any]] = []
    for rule in tomllib.loads(raw.decode())["rules"]:
        if rule["id"] in OMITTED_RULE_IDS or rule["id"].endswith(PUBLIC_RULE_SUFFIXES):
            continue
        assignment = _ASSIGNED_RULE_PATTERN.match(rule["regex"])
        if assignment:
            assigned.append(make_assignment_rule(rule, assignment["words"], assignment["value"]))
            _, _, alternative = assignment["value"].partition("|\\b(")
            if alternative and rule["id"].startswith("atlassian"):
                tokens.append(make_token_rule(rule, f"\\b({alternative}", ["atatt3"]))
        elif keywords := TOKEN_KEYWORDS.get(rule["id"], rule["keywords"]):
            tokens.append(make_token_rule(rule, rule["regex"], keywords))
    origin = {
        "name": "gitleaks, default configuration",
        "address": "https://github.com/gitleaks/gitleaks",
        "version": gitleaks_version,
        "sha256": hashlib.sha256(raw).hexdigest(),
        "licence": "MIT License, Copyright (c) 2019 Zachary Rice",
    }
    data = {"origin": origin, "tokens": tokens, "assigned": assigned}
    RULES_FILE.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(tokens)} token rules, {len(assigned)} assigned rules in {RULES_FILE}\n")


def make_token_rule(rule: dict[str, Any], regex: str, keywords: list[str]) -> dict[str, Any]:
    """Return a rule for secrets with a distinctive shape.

    Every match contains one of the lower-case ``keywords``.
    """
    allowed = [text for entry in rule.get("allowlists", []) for text in entry.get("regexes", [])]
    return {
        "kind": rule["id"],
        "keywords": keywords,
        "regex": convert_go_regex_to_python(regex),
        "entropy": rule.get("entropy", 0),
        "allowed": [convert_go_regex_to_python(text) for text in allowed],
    }


def make_assignment_rule(
    rule: dict[str, Any], vendor_pattern: str, value_pattern: str
) -> dict[str, Any]:
    """Return a rule for secrets that are assigned to a name of a vendor.

    ``vendor_pattern`` matches the vendor's name, and ``value_pattern`` matches the secret.
    """
    plain = re.sub(
        r"\(\?-i:([^)]*)\)", lambda found: simplify_name_pattern(found[1]), vendor_pattern
    )
    return {
        "kind": rule["id"],
        "words": re.sub(r"\((?!\?)", "(?:", plain.lower()),
        "value": convert_go_regex_to_python("(?i)" + value_pattern.partition("|\\b(")[0]),
        "entropy": rule.get("entropy", 0),
    }


def simplify_name_pattern(words: str) -> str:
    """Simplify an expression whose alternatives differ only in case: ``ETSY|[Ee]tsy`` becomes ``etsy``."""
    return "|".join(
        dict.fromkeys(re.sub(r"\[(\w)\w\]", r"\1", word).lower() for word in words.split("|"))
    )


def convert_go_regex_to_python(regex: str) -> str:
    """Convert an expression from Go's dialect to Python's.

    Flags and character classes are converted. A list of characters that may end a token is replaced
    by a lookahead.
    """
    regex = (
        _TOKEN_END_PATTERN.sub(_END_LOOKAHEAD, regex)
        .replace("[[:alnum:]]", "[A-Za-z0-9]")
        .replace("[:alnum:]", "A-Za-z0-9")
    )
    regex = regex.replace(r"(?:[^\w-]|\z)", r"(?![\w-])").replace(
        r"(?:[^a-zA-Z0-9+/]|\z)", "(?![a-zA-Z0-9+/])"
    )
    regex = re.sub(
        r"\{(\d+),\}", lambda found: f"{{{found[1]},{max(2000, 2 * int(found[1]))}}}", regex
    )
    regex = regex.replace(r"\z", r"\Z")
    while (place := regex.find("(?i)", 1)) > 0:
        end = find_group_end(regex, place)
        regex = f"{regex[:place]}(?i:{regex[place + 4 : end]}){regex[end:]}"
    re.compile(regex.encode())
    return regex


def find_group_end(regex: str, flag_index: int) -> int:
    """Return the index at which the group that contains a flag ends.

    If no group contains the flag, return the length of the expression.
    """
    depth, is_in_class, at = 0, False, flag_index + 4
    while at < len(regex):
        character = regex[at]
        if character == "\\":
            at += 1
        elif is_in_class:
            is_in_class = character != "]"
        elif character == "[":
            is_in_class = True
        elif character == "(":
            depth += 1
        elif character == ")":
            if not depth:
                return at
            depth -= 1
        at += 1
    return at


if __name__ == "__main__":
    main(*sys.argv[1:])
