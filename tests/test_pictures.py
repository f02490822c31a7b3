"""Tests that the pictures in the README and the guide show the current texts of cards and verbs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from resume_hooks.cli.main import run
from resume_hooks.hooks.prompt import card_of_trigger
from resume_hooks.hooks.triggers import recognise_trigger
from tests.builders import ConfigHome
from tests.needs import REPO
from tools import pictured
from tools.svg import Cell, draw_animation, draw_picture, extract_drawn_text, extract_lines

PICTURE_FOLDER = REPO / "docs" / "pictures"
TRIGGERS_BY_PICTURE = {
    "resume": "resume",
    "handoff": f"handoff {pictured.NEXT_STEP}",
    "trim": "trim",
}
VERBS_BY_PICTURE = {
    "search": ["search", *pictured.SEARCH_ARGUMENTS],
    "lineage": ["lineage", pictured.SESSION_ID[:8]],
}
SCREEN_TEXTS_BY_PICTURE = {
    "pasted": [
        "Handed off from",
        f"Next step: {pictured.NEXT_STEP}",
        "Loaded: ",
        "lists of files and commands",
    ],
    "going-on": [
        f"/handoff {pictured.NEXT_STEP}",
        "Handed off from",
        f"Next step: {pictured.NEXT_STEP}",
        "1. Open the trimmed copy",
        pictured.ANSWER_TEXT,
    ],
    "chooser": [
        "Resume a session",
        "[outline] lineage table",
        "turns, newest first",
        "Enter opens · Tab preview",
    ],
}
CLIPBOARD_LINE_PATTERN = re.compile(r"copied|Copied|Type the /resume")


def text_of_picture(name: str) -> str:
    """Return the text in a picture."""
    return "\n".join(extract_lines((PICTURE_FOLDER / f"{name}.svg").read_text("utf-8")))


def remove_variable_parts(text: str, home: str = "~") -> str:
    """Return a text without numbers, ids, paths of homes and spaces, so that tests compare only the words."""
    text = text.replace(home, "~")
    text = re.sub(
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(?=[a-f]*\d)[0-9a-f]{8}\b", "#", text
    )
    text = re.sub(r"\d[\d,.:]*(?: [hdms]\b)?", "#", text)
    return "".join(text.split())


@pytest.fixture
def uploader_home(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> ConfigHome:
    """Return a home with the sessions that the pictures show, and change to the sessions' folder."""
    cwd = config_home.root / "uploader"
    cwd.mkdir()
    pictured.write_sessions(config_home.project(str(cwd)), str(cwd))
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    monkeypatch.setenv("COLUMNS", "120")
    return config_home


def pictures_of_pages() -> dict[str, str]:
    """Return the alternative texts of the pictures in the pages. The keys are the pictures' names."""
    pages = "".join(
        page.read_text("utf-8") for page in (REPO / "README.md", *(REPO / "docs").glob("*.md"))
    )
    found = re.findall(r"!\[([^\]]*)\]\((?:docs/)?pictures/([a-z-]+)\.svg\)", pages)
    return {name: words for words, name in found}


def test_pictures_and_pages_agree() -> None:
    """Each picture is used on a page; each picture on a page exists and has an alternative text."""
    named = pictures_of_pages()
    assert sorted(named) == sorted(path.stem for path in PICTURE_FOLDER.glob("*.svg"))
    assert sorted({*TRIGGERS_BY_PICTURE, *VERBS_BY_PICTURE, *SCREEN_TEXTS_BY_PICTURE}) == sorted(
        named
    )
    assert all(len(words) > 15 for words in named.values())


@pytest.mark.parametrize(
    "name", sorted({*TRIGGERS_BY_PICTURE, *VERBS_BY_PICTURE, *SCREEN_TEXTS_BY_PICTURE})
)
def test_a_picture_has_only_text_and_shapes(name: str) -> None:
    """A picture contains only text and shapes: no scripts, links or other images."""
    source = (PICTURE_FOLDER / f"{name}.svg").read_text("utf-8")
    tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(source).iter()}
    assert tags <= {
        "svg",
        "title",
        "desc",
        "rect",
        "circle",
        "text",
        *(("g", "style") if name == "going-on" else ()),
    }
    assert "href" not in source
    assert source.count("http") == 1  # The only URL is that of the SVG format.
    assert "".join(text_of_picture(name).split()) in extract_drawn_text(source)
    assert max(map(len, extract_lines(source))) <= 104


@pytest.mark.parametrize("name", TRIGGERS_BY_PICTURE)
def test_a_card_matches_its_picture(uploader_home: ConfigHome, name: str) -> None:
    """A picture contains the lines of its card, apart from numbers, ids and the line about the clipboard.

    If this test fails, run ``python -m tools.make_pictures``.
    """
    trigger = recognise_trigger(f"/resume-hooks:{TRIGGERS_BY_PICTURE[name]}")
    assert trigger is not None
    said = card_of_trigger(trigger, {"session_id": pictured.SESSION_ID, "prompt": ""})
    shown = remove_variable_parts(text_of_picture(name))
    for line in said.split("\n"):
        # The position at which a path is cut depends on the path's length.
        if not CLIPBOARD_LINE_PATTERN.search(line) and "…" not in line:
            assert remove_variable_parts(line, str(uploader_home.root)) in shown, line


@pytest.mark.parametrize("name", VERBS_BY_PICTURE)
def test_a_verb_matches_its_picture(
    uploader_home: ConfigHome, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A picture contains the lines that its verb prints, apart from numbers, ids and the folder.

    If this test fails, run ``python -m tools.make_pictures``.
    """
    assert run(VERBS_BY_PICTURE[name]) == 0
    shown = remove_variable_parts(text_of_picture(name).replace("-home-ann-uploader", "<key>"))
    key = re.sub(r"[^A-Za-z0-9]", "-", os.fspath(uploader_home.root / "uploader"))
    for line in capsys.readouterr().out.split("\n"):
        assert (
            remove_variable_parts(line.replace(key, "<key>"), str(uploader_home.root)) in shown
        ), line


@pytest.mark.parametrize("name", SCREEN_TEXTS_BY_PICTURE)
def test_the_picture_of_a_screen_has_the_expected_texts(name: str) -> None:
    """The picture of a screen contains the texts that are expected on it."""
    for words in SCREEN_TEXTS_BY_PICTURE[name]:
        assert remove_variable_parts(words) in remove_variable_parts(text_of_picture(name))


def test_cells_of_a_screen_are_drawn_as_svg() -> None:
    """The cells of a screen are drawn as SVG text with escaped characters and colours."""
    rows = [
        [
            *(Cell(c, "green", is_bold=True) for c in "a<b"),
            Cell(" "),
            Cell("x", "ff0000", is_reversed=True),
        ]
    ]
    source = draw_picture(rows, "T & U")
    assert extract_lines(source) == ["a<b x"]
    assert extract_drawn_text(source) == "T&Ua<bx"
    assert '<rect x="49.6" y="34" width="8.4" height="18" fill="#ff0000"/>' in source
    assert 'fill="#98c379" font-weight="700">a&lt;b</text>' in source


def test_screens_are_animated_in_turn() -> None:
    """An animated picture shows its screens in turn. Without animation, only the second is visible."""
    source = draw_animation([[[Cell("a")]], [[Cell("b")], [Cell("c")]]], "T")
    assert extract_lines(source) == ["a", "b", "c"]
    assert re.findall(r'<g opacity="(\d)">', source) == ["0", "1"]
    assert "animation:show 6s" in source
    assert re.findall(r"animation-delay:(-\d)s", source) == ["-6", "-3"]


def test_pictures_have_no_paths_of_this_machine() -> None:
    """No picture contains a path of the machine on which it was made."""
    for path in Path(PICTURE_FOLDER).glob("*.svg"):
        assert not re.search(r"/root|/work/|/tmp", path.read_text("utf-8"))
