"""Tests of the exported page without a browser.

The tests cover markup, prose, code, differences, images and the head of the page.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

import pytest

from resume_hooks.parts.share.export.page.markup import (
    Html,
    build_element,
    build_start_tag,
    escape_html,
    join_markup,
    show_control_characters,
)
from resume_hooks.parts.share.export.page.texts import (
    CSS_CLASSES_BY_TOKEN_TYPE,
    LEXERS_BY_LANGUAGE,
    MAX_COLOURED_CHARACTERS,
    MAX_COLOURED_LINE_CHARACTERS,
    MAX_COLOURED_LINES,
    MAX_COMPARED_LINES,
    MAX_PROSE_CHARACTERS,
    build_code_markup,
    build_difference_markup,
    build_picture_markup,
    build_prose_markup,
    count_changed_lines,
)
from resume_hooks.parts.share.export.parts import MediaPart
from tests.builders import SESSION, ConfigHome, write_session
from tests.parts.share.export.conftest import PNG_BASE64, ExportText
from tests.parts.share.export.vectors import (
    ALLOWED_ELEMENTS,
    ATTACK_TEXTS,
    PageParts,
    hostile_records,
)

TAG_PATTERN = re.compile(r"<[^>]*>")


def visible_text(markup: str) -> str:
    """Return the visible text of markup."""
    return html.unescape(TAG_PATTERN.sub("", markup))


def test_text_is_escaped_in_markup() -> None:
    """Text is escaped in content and attributes, and the page's own markup is not."""
    made = build_element(
        "p", "<i>", build_element("b", "&"), title='"><script>', class_="x", hidden=True, lang=False
    )
    assert made == '<p title="&quot;&gt;&lt;script&gt;" class="x" hidden>&lt;i&gt;<b>&amp;</b></p>'
    assert join_markup(["<", Html("<br>")]) == "&lt;<br>"
    # An f-string returns a plain string, which is escaped.
    assert escape_html(f"{Html('<b>')}") == "&lt;b&gt;"
    assert build_start_tag("a", data_x="1") == '<a data-x="1">'
    assert build_element("br") == "<br>"


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("user\u202etxt.exe", "user[U+202E]txt.exe"),
        ("\x00\x07\u200b\ufeff", "[U+0000][U+0007][U+200B][U+FEFF]"),
        ("\U000e0041", "[U+E0041]"),
        ("\ud800", "[U+D800]"),
        ("👩\u200d💻 ok\t", "👩\u200d💻 ok\t"),
    ],
)
def test_control_characters_are_visible(text: str, expected_text: str) -> None:
    """Control characters are shown by their number, for example "[U+202E]". Emoji are unchanged."""
    assert show_control_characters(text) == expected_text


@pytest.mark.parametrize(
    ("text", "expected_markup"),
    [
        ("**a** _b_ ~~c~~ `d`", "<p><strong>a</strong> <em>b</em> <s>c</s> <code>d</code></p>"),
        ("# a", "<h4>a</h4>"),
        ("- a\n- b", "<ul><li>\na\n</li>\n<li>\nb\n</li>\n</ul>"),
        ("3. a", '<ol start="3"><li>\na\n</li>\n</ol>'),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>"),
        ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>"),
        ("[x](javascript:a)", "<p>[x](javascript:a)</p>"),
        ("[x](data:text/html,y)", "<p>[x](data:text/html,y)</p>"),
        ("[x](//evil)", "<p><a>x</a></p>"),
        ("[x](file:///etc)", "<p>[x](file:///etc)</p>"),
        ("![x](https://t/x.png)", ""),
        ("a\n***", "<p>a</p>\n<hr>"),
    ],
)
def test_markdown_becomes_allowed_elements(text: str, expected_markup: str) -> None:
    """Markdown becomes a few allowed elements, and HTML in it becomes text.

    Images are not shown, and links lead only to the web.
    """
    found = (
        build_prose_markup(text)
        .removeprefix('<div class="prose" dir="auto">')
        .removesuffix("</div>")
        .strip()
    )
    if expected_markup:
        assert found == expected_markup
    assert "<img" not in found


def test_a_link_sends_no_referrer() -> None:
    """A link opens without a referrer."""
    made = build_prose_markup("[x](https://a.b/c?d=1&e)")
    assert (
        'href="https://a.b/c?d=1&amp;e" rel="noreferrer noopener nofollow" target="_blank"' in made
    )


def test_a_very_long_text_is_not_parsed() -> None:
    """A very long text is shown as it was typed, without parsing its Markdown."""
    assert build_prose_markup("*a* " * MAX_PROSE_CHARACTERS).startswith(
        '<div class="typed" dir="auto">*a* *a*'
    )


@pytest.mark.parametrize(
    "nested_text", ["> " * 3_000 + "x", "[" * 3_000, "*" * 3_000 + "a", "`" * 3_001, "- " * 3_000]
)
def test_deeply_nested_prose_is_parsed_quickly(nested_text: str) -> None:
    """Deeply nested Markdown is shown without a long computation."""
    assert build_prose_markup(nested_text)


@pytest.mark.parametrize("language", sorted(set(LEXERS_BY_LANGUAGE.values())))
def test_highlighted_code_keeps_every_character(language: str) -> None:
    """Highlighted code has every character of the code, escaped, in any language."""
    text = "def f(x):\n\t'''<b>&\"'''\n  return \"${x}\" # <script>\n\n"
    assert visible_text(build_code_markup(text, language)) == text


@pytest.mark.parametrize(
    "word", ["", "no-such", "<script>", 'python" onload="x', "../../etc", "PYTHON", "x" * 9_999]
)
def test_the_word_after_a_fence_only_chooses_a_lexer(word: str) -> None:
    """The word after a code fence only chooses a language and is not written to the page."""
    made = build_code_markup("a < b", word)
    assert visible_text(made) == "a < b"
    assert "onload" not in made


def test_long_code_is_not_highlighted() -> None:
    """Long code is not highlighted, because that could take too long."""
    for text in (
        "def f():  # long\n" * (MAX_COLOURED_CHARACTERS // 10),
        "\n" * (MAX_COLOURED_LINES + 1),
        "x = " + "1" * MAX_COLOURED_LINE_CHARACTERS,
    ):
        assert "<span" not in build_code_markup(text, "python")
    assert all(kind.startswith("Token.") for kind, _ in CSS_CLASSES_BY_TOKEN_TYPE)


def test_a_difference_shows_changed_lines() -> None:
    """A difference shows changed lines with a few lines around them.

    A gap marker replaces the lines between two changes.
    """
    old = "\n".join([f"line {n}" for n in range(40)])
    new = old.replace("line 3\n", "<new>\n").replace("line 30\n", "")
    made = build_difference_markup(old, new)
    assert count_changed_lines(old, new) == (2, 1)
    assert '<span class="d-ins">+ &lt;new&gt;\n</span>' in made
    assert '<span class="d-del">- line 3\n</span>' in made
    assert '<span class="d-gap">' in made
    assert "line 15\n" not in made


def test_long_texts_are_not_compared() -> None:
    """Long texts are not compared; all their lines count as removed and added."""
    assert count_changed_lines("a\n" * (MAX_COMPARED_LINES + 1), "a\n") == (
        MAX_COMPARED_LINES + 1,
        1,
    )


@pytest.mark.parametrize(
    ("kind", "media_type", "data"),
    [
        ("image", "image/svg+xml", PNG_BASE64),
        ("image", "text/html", PNG_BASE64),
        ("image", 'image/png" onerror="x', PNG_BASE64),
        ("image", "image/png", '"><script>'),
        ("image", "image/png", ""),
        ("document", "application/pdf", PNG_BASE64),
    ],
)
def test_an_unsupported_image_is_described(kind: str, media_type: str, data: str) -> None:
    """An image of an unsupported type, or with invalid data, is replaced with a description."""
    assert (
        build_picture_markup(MediaPart(kind, media_type, data, "<about>"))
        == '<p class="note">[&lt;about&gt;]</p>'
    )


def test_an_image_is_embedded_in_the_page() -> None:
    """An image is embedded in the page as a ``data:`` URL."""
    assert f'src="data:image/png;base64,{PNG_BASE64}"' in build_picture_markup(
        MediaPart("image", "image/png", PNG_BASE64, "image, png")
    )


def test_the_policy_allows_one_style_and_one_script(
    session_of_every_kind: Path, export_text: ExportText
) -> None:
    """The page's policy allows its own style and script by their digests, and nothing else."""
    page = export_text(session_of_every_kind)
    style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert (len(style), len(script), page.count("<script")) == (1, 1, 1)
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[0]
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (*style, *script)
    ]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not re.findall(r'(?:src|href)="(?!#|data:image/|https?://|mailto:)', page)
    assert not re.search(r"<[^>]+\s(?:style|on\w+)=", page)


def test_a_page_has_one_language_and_one_title(
    session_of_every_kind: Path, export_text: ExportText
) -> None:
    """The page states its language and its title once, and all its elements are closed."""
    page = export_text(session_of_every_kind)
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert page.count("<title>Uploads: a pool that closes early</title>") == 1
    assert page.count("<details") == page.count("</details>")
    assert page.count("<div") == page.count("</div>")


@pytest.mark.parametrize("vector", ATTACK_TEXTS)
def test_hostile_text_in_every_field_is_escaped(
    vector: str, config_home: ConfigHome, export_text: ExportText
) -> None:
    """Hostile text in every field of a transcript becomes no element and no attribute."""
    parts = PageParts()
    parts.feed(export_text(write_session(config_home.project(), SESSION, hostile_records(vector))))
    assert parts.elements <= ALLOWED_ELEMENTS
    assert parts.suspect == []
