"""Tests of documents in Markdown: their content, and the effect of hostile text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from resume_hooks.parts.share.export import MARKDOWN
from resume_hooks.parts.share.export.as_markdown import (
    escape_markdown,
    fence_text,
    format_document,
    make_markdown_safe,
)
from resume_hooks.parts.share.export.parts import USER, TextPart
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    call,
    custom_title,
    repl_script,
    tool_result,
    user,
    write_session,
)
from tests.parts.share.export.conftest import (
    GITHUB_TOKEN,
    ExportText,
    records_of_every_kind,
    write_session_with_subagent,
)


def test_calls_of_a_script_have_their_output(tmp_path: Path, export_text: ExportText) -> None:
    """A document shows the output of each call that a script made, with secrets removed.

    The client stores this output beside an empty result.
    """
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    made = [("Bash", {"command": "make test"}, {"stdout": f"5 passed {secret}", "stderr": ""})]
    rows = [user("go", uuid="r0"), *repl_script(made, uuid="s", parent="r0")]
    text = export_text(Path(write_session(tmp_path, SESSION, rows)), MARKDOWN)
    assert "```sh\nmake test\n```\n\n```\n5 passed " in text
    assert secret not in text


def test_edits_of_one_call_are_one_difference(tmp_path: Path, export_text: ExportText) -> None:
    """Several edits in one call are one difference, with ``@@`` between them."""
    edits = [
        {"old_string": "a", "new_string": "b"},
        {"old_string": "", "new_string": "c"},
        {"old_string": "d", "new_string": ""},
    ]
    inputs = {"file_path": "/home/user/proj/pool.py", "edits": edits}
    rows = [
        user("go", uuid="r0"),
        *repl_script([("MultiEdit", inputs, {})], uuid="s", parent="r0"),
    ]
    text = export_text(Path(write_session(tmp_path, SESSION, rows)), MARKDOWN)
    assert "```diff\n-a\n+b\n@@\n+c\n@@\n-d\n```" in text


def test_a_document_contains_the_whole_session(
    session_of_every_kind: Path, export_text: ExportText
) -> None:
    """A document starts with the session's id and project, and lists its turns in order.

    Each turn has its calls, results and sub-agents. The document ends with the number of removed
    secrets.
    """
    text = export_text(session_of_every_kind, MARKDOWN)
    wanted = [
        "# Uploads: a pool that closes early\n",
        f"| Session | {SESSION} |\n| Project | \\~/proj |",
        "2026-01-31 09:30 · Bash · before a compaction",
        "**User** · 2026-01-31 09:30\n\n> Find out why uploads fail",
        "Thinking</summary>\n\n```\nperhaps the pool",
        "```sh\npytest -k upload\n```\n\n```\n1 failed\nred\n",
        "**Assistant** · 2026-01-31 09:30\n\nThe pool closes **before** the upload ends:",
        "compaction</summary>\n\n```\n150,000 tokens before",
        "Summary</summary>",
        "*image, png,",
        "- [x] find it\n- [~] fix it",
        "<b>Edit</b> ~/proj/pool.py",
        "<b>Agent</b> look",
        "Sub-agent Explore agent-a1",
        "The sub-agent found a needle.",
        "Looked.",
        "<b>Bash</b> false (failed)</summary>\n\n```sh\nfalse\n```\n\n```\nExit code 1",
        "No secrets were found. Home folders are shown as \\~.",
    ]
    place = 0
    for words in wanted:
        place = text.index(words, place)
    assert "\x1b" not in text
    assert "/home/user" not in text

    assert '## <a id="t3"></a>Turn 3: Thanks. The unanswered question?' in text
    assert "1. [Find out why uploads fail](#t1)" in text
    assert "> Fix it, &lt;b>please&lt;/b>" in text
    assert "```diff\n-a\n-wait=False\n+a\n+wait=True\n```" in text
    assert text.count("<details>") == text.count("</details>") > 5
    bare = export_text(session_of_every_kind, MARKDOWN, includes_thinking=False)
    assert "perhaps the pool" not in bare
    assert "Find out" in bare


def test_secrets_are_redacted_in_every_field(
    config_home: ConfigHome, export_text: ExportText
) -> None:
    """Secrets are removed from titles, prompts, calls, results, answers and thinking."""
    records = [
        user(f"Use {GITHUB_TOKEN}", uuid="u0"),
        assistant(
            [{"type": "thinking", "thinking": f"hm {GITHUB_TOKEN}", "signature": "s"}],
            uuid="a1",
            parent="u0",
            ts=1,
        ),
        assistant(
            [call("c1", "Bash", command=f"curl -H 'token: {GITHUB_TOKEN}' x")],
            uuid="a2",
            parent="a1",
            ts=2,
        ),
        tool_result("c1", [{"type": "text", "text": GITHUB_TOKEN}], uuid="u3", parent="a2", ts=3),
        assistant(f"It is {GITHUB_TOKEN}.", uuid="a4", parent="u3", ts=4),
        custom_title(f"About {GITHUB_TOKEN}"),
    ]
    path = write_session(config_home.project(), SESSION, records)
    text = export_text(path, MARKDOWN)
    assert GITHUB_TOKEN not in text
    assert re.search(r"5 secrets removed", text.replace("\\", ""))
    assert GITHUB_TOKEN in export_text(path, MARKDOWN, must_redact=False)


@pytest.mark.parametrize(
    ("text", "fence"), [("plain", "```"), ("a ``` b", "````"), ("`" * 9, "`" * 10), ("~~~", "```")]
)
def test_a_fence_is_longer_than_any_fence_in_its_text(text: str, fence: str) -> None:
    """A code fence is longer than any fence in its text, so that the text cannot close it."""
    lines = fence_text(text).split("\n")
    assert (lines[0], lines[-1]) == (fence, fence)


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ("a `b[0]` c", "a `b[0]` c"),
        ("a `<b>` c", "a <code>&lt;b&gt;</code> c"),
        ("</details> <script>", "&lt;/details> &lt;script>"),
        (r"\`<b>\`", r"\`&lt;b>\`"),
        ("``a`<b>`` <i>", r"<code>a\`&lt;b&gt;</code> &lt;i>"),
        ("![x](http://t/x.png)", "!\\[x](http://t/x.png)"),
        ("[x](javascript:alert(1))", "[x]\\(javascript:alert(1))"),
        ("[x](https://a.b/c)", "[x](https://a.b/c)"),
        ("[x](docs/a.md)", "[x](docs/a.md)"),
        ("[x]: javascript:alert(1)", "[x]\\: javascript:alert(1)"),
        ("<javascript:alert(1)>", "&lt;javascript:alert(1)>"),
        ("```js\n<b>\n", "```js\n<b>\n\n```"),
        ("~~~~\n~~~\n<b>", "~~~~\n~~~\n<b>\n~~~~"),
        ("```a`b\n<b>", "```a`b\n&lt;b>"),
        ("    ```\n<b>", "    ```\n&lt;b>"),
        ("```\ncode\n```\n<b>", "```\ncode\n```\n&lt;b>"),
        (
            "- a\n\n  ```\n  <b>\n  ```\n\n```\n<b>\n```",
            "- a\n\n  ```\n  &lt;b>\n  ```\n\n```\n<b>\n```",
        ),
        ("  ```\n<b>\n```\n<b>", "  ```\n&lt;b>\n```\n&lt;b>"),
        ("- ```\n  a\n```\n<b>", "- ```\n  a\n```\n<b>\n```"),
    ],
)
def test_restrict_markdown_allows_no_html_or_images(text: str, expected_text: str) -> None:
    """``make_markdown_safe`` turns HTML into text, loads no images and keeps only links to the web.

    It closes open code fences.
    """
    assert make_markdown_safe(text) == expected_text


NESTED_MARKDOWN = [
    "%s", "- a\n  ```\n  x\n%s", "1. Run this:\n\n   ```sh\n   ls\n\n%s", "a ` b\nc ` %s `", "|a|b|\n|-|-|\n|`|%s|`|",
    "> ```\n> x\n%s", "> ~~~\n%s\n~~~\n%s", "* ~~~\n%s", "- - ```\n%s", "> - ```\n>   x\n> %s", "- > ```\n  %s",
    "-     ```\n%s", "-\t```\n  ```\n%s", "\t```\n%s\n```\n%s", " \t```\n%s\n```\n%s", "```\n\t```\n%s\n```",
    "```\nx\n    ```\n%s", "```\n```\u00a0\n%s\n```", "```\n``` x\n%s\n```\n%s", "- ```\n%s\n```\n%s",
    "  ```\n%s\n```\n%s", "   ~~~\n%s\n```\n%s", "a\n    ```\n%s\n    ```\n%s", "```a`b\n%s\n```\n%s",
    "~~~a`b\nx\n~~~\n%s", "````\n```\n````\n%s", "<!--\n```\n-->\n%s\n```", "<!-- ` -->%s `",
    "<pre>\n```\n</pre>\n%s\n```", "<script>\n```\n%s", "<div>\n```\n</div>\n\n%s", "a `\n===\n` %s `",
    "a `\n---\n` %s `", "# a `\n%s `", "a `\n\n` %s `", "[^1]: ```\n%s", "[^1]: a\n\n    ```\n%s\n```\n%s",
    "a ` b\n` ![r] `\n\n`\n[r]: https://e.example/1.png\n` %s", "[`](a) %s `", "\\` %s `", "\\\\` %s `",
    "`` a\nb ` %s `` x `", "- a\r\n  ```\r\n%s", "```\r\n```\r\n%s", "- ```\f%s", "```\f```\f%s",
    "```\u2028```\u2028%s", "a ` b\u0085c ` %s `", "- [ ] ```\n%s", "1) a\n   1. ```\n      x\n   %s", "\\%s", "!%s",
    "> " * 30 + "```\n%s\n```\n%s", "- " * 30 + "```\n%s", "```\n%s", "- a\n\n  ```\n  %s", "$$\n```\n$$\n%s",
    "**`** %s `", "&lt;` %s `", "|a|\n|-|\n```\n```\n%s", "***\n```\n```\n%s",
    "%s\n```\nx\n    ```", "%s\n```\nx\n    ```\n", "%s\n```\n~~~", "```|a\n|-|-|\n%s\n```\n%s",
    "````\n%s\n```", "```", "  ~~~\n%s\n\n",
]  # fmt: skip
HOSTILE_MARKDOWN = [
    "![b](https://e.example/1.png)",
    "<img src=https://e.example/1.png>",
    "</details>",
    "![r]\n\n[r]: https://e.example",
]
MARKDOWN_PARSERS = [
    MarkdownIt(preset, {"html": True, "linkify": False, "maxNesting": 99})
    for preset in ("commonmark", "gfm-like")
]
MARKDOWN_PIECES = [
    "```", "~~~", "````", "`", "``", "\n", "\n\n", "\n", " ", "  ", "    ", "\t", "- ", "1. ", "> ", "|", "a",
    "|a|\n|-|\n", "---\n", "\\", "\u00a0", "\r", "<!--", "-->", "<pre>", "!", "[a]", "]:", "](", *HOSTILE_MARKDOWN,
]  # fmt: skip


def assert_no_image_or_html(text: str) -> None:
    """Check that a Markdown parser finds no image, no HTML except ``<code>``, and no open fence."""
    for shown in (
        make_markdown_safe(text),
        "".join(format_document([TextPart(USER, text, "")])),
    ):
        for preset in MARKDOWN_PARSERS:
            tokens = [
                one for token in preset.parse(shown) for one in (token, *(token.children or ()))
            ]
            live = {
                one.content for one in tokens if one.type in {"html_block", "html_inline", "image"}
            }
            assert live <= {"<code>", "</code>"}, (text, shown)
            after = preset.parse(f"{shown}\n\nend")[-2:][0]
            assert (after.type, after.content) == ("inline", "end"), (text, shown)


@pytest.mark.parametrize("hostile", HOSTILE_MARKDOWN)
def test_no_nesting_produces_an_image_or_html(hostile: str) -> None:
    """Hostile text in lists, quotes, tables and code fences becomes neither an image nor HTML."""
    for nesting in NESTED_MARKDOWN:
        assert_no_image_or_html(nesting.replace("%s", hostile))


@given(st.lists(st.sampled_from(MARKDOWN_PIECES), max_size=24).map("".join))
def test_no_text_produces_an_image_or_html(text: str) -> None:
    """Random combinations of Markdown and hostile text become neither an image nor HTML."""
    assert_no_image_or_html(text)


@pytest.mark.parametrize(
    "fence",
    [
        "```html\n\t<b>![x](y)\n\n  ~~~\n```",
        "~~~\n<b> `a` ```\n~~~~",
        "````md\n```\n<b>\n```\n````",
    ],
)
@pytest.mark.parametrize(
    "surroundings",
    ["%s", "a\n%s\nb", "1. a\n\n   ```\n   x\n   ```\n\n%s\n\n- b", "> ```\n%s", "%s\n%s\n"],
)
def test_plain_fences_are_unchanged(fence: str, surroundings: str) -> None:
    """Code in fences outside of lists and quotes is unchanged."""
    assert make_markdown_safe(surroundings.replace("%s", fence)) == surroundings.replace(
        "%s", fence
    )


def test_escape_markdown_gives_one_line() -> None:
    """``escape_markdown`` turns a text into one escaped line for a heading, a table cell or a link."""
    assert escape_markdown("a|b [c](d) <i>\n# e `f`") == r"a\|b \[c\](d) &lt;i&gt; \# e \`f\`"


def test_the_output_of_a_client_command_has_no_tags(
    config_home: ConfigHome, export_text: ExportText
) -> None:
    """The output of a command of the client is exported without the client's tags."""
    first, second = records_of_every_kind()[:2]
    said = {
        "subtype": "local_command",
        "content": "<local-command-stdout>Kept</local-command-stdout>",
    }
    printed = {
        "type": "system",
        **said,
        "uuid": "lc",
        "parentUuid": second["uuid"],
        "timestamp": second["timestamp"],
    }
    text = export_text(write_session_with_subagent(config_home, [first, second, printed]), MARKDOWN)
    assert "Kept" in text
    assert "local-command" not in text
