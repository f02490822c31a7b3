"""Tests of the exported page in a real Chromium.

The tests cover folding, search, themes, links, print, phones and hostile transcripts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

from resume_hooks.parts.share.export.shared_page import BUNDLE_START_TEXT, open_packed_bundle
from tests.builders import SESSION, ConfigHome, write_session
from tests.needs import corpus_sessions, require_for_test
from tests.parts.share.export.conftest import ExportText, document_of_session, records_of_every_kind
from tests.parts.share.export.vectors import (
    ALLOWED_ELEMENTS,
    ATTACK_SCRIPT,
    ATTACK_TEXTS,
    hostile_records,
)

CLOSED_TURNS_SCRIPT = "() => document.querySelectorAll('main details:not([open])').length"
BACKGROUND_SCRIPT = "() => getComputedStyle(document.body).backgroundColor"
WIDTHS_SCRIPT = "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"

INSPECTION_SCRIPT = """() => {
  const all = [...document.querySelectorAll('*')];
  return {
    elements: [...new Set(all.map((one) => one.localName))],
    handlers: all.flatMap((one) => one.getAttributeNames().filter((name) => /^on|^style$/.test(name))),
    links: all.flatMap((one) => ['href', 'src', 'action', 'data'].map((key) => one.getAttribute(key))).filter(Boolean),
    pwned: window.pwned,
  };
}"""


class OpenedPage(NamedTuple):
    """An opened page, and the list of its errors."""

    page: Page
    errors: list[str]


OpenPage = Callable[..., OpenedPage]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield a headless Chromium that is installed on the system."""
    path = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    require_for_test("Chromium", path, "apt-get install chromium")
    home = str(tmp_path_factory.mktemp("browser"))
    environ: dict[str, str | float | bool] = {**os.environ, "HOME": home}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"], env=environ
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser, export_text: ExportText, tmp_path: Path) -> Iterator[OpenPage]:
    """Yield a function that exports a file as a page and opens it without a network.

    Each error of the page is recorded.
    """
    contexts = []

    def load_page(file: str | os.PathLike[str], address: str = "", **context: object) -> OpenedPage:
        path = tmp_path / "page.html"
        own = file if str(file).endswith(".html") else None
        path.write_text(Path(own).read_text() if own else export_text(file), encoding="utf-8")
        settings = {"viewport": {"width": 1200, "height": 800}, **context}
        made = chromium.new_context(offline=True, **settings)  # type: ignore[arg-type]
        made.set_default_timeout(10_000)
        contexts.append(made)
        page, errors = made.new_page(), list[str]()

        def record_message(message: ConsoleMessage) -> None:
            errors.append(f"console: {message.text}")

        def dismiss_dialog(dialog: Dialog) -> None:
            errors.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def record_request(address: str) -> None:
            if address.partition("#")[0] != path.as_uri() and not address.startswith("data:image/"):
                errors.append(f"request: {address}")

        page.on("console", record_message)
        page.on("pageerror", lambda error: errors.append(f"error: {error}"))
        page.on("dialog", dismiss_dialog)
        page.on("request", lambda request: record_request(request.url))
        page.on("framenavigated", lambda frame: record_request(frame.url))
        made.on("page", lambda other: errors.append("a window") if other != page else None)
        page.goto(f"{path.as_uri()}{address}")
        return OpenedPage(page, errors)

    yield load_page
    for made in contexts:
        made.close()


@pytest.fixture
def session_with_many_turns(config_home: ConfigHome, session_of_every_kind: Path) -> Path:
    """Write a session with so many turns that the page folds them, and return its path."""
    rows = records_of_every_kind()
    first = len(rows) - 1
    later = [
        {**rows[17 + place % 3], "uuid": f"later-{place}", "parentUuid": f"later-{place - 1}"}
        for place in range(30)
    ]
    later[0]["parentUuid"] = rows[-2]["uuid"]
    return Path(write_session(config_home.project(), SESSION, [*rows[:first], *later, rows[first]]))


def test_turns_fold_and_unfold(open_page: OpenPage, session_with_many_turns: Path) -> None:
    """A click, a key or a button folds and unfolds turns."""
    page, errors = open_page(session_with_many_turns)
    inner = page.locator("#t1 .body")
    assert not inner.is_visible()
    page.click("#t1 > summary .words")
    assert inner.is_visible()
    page.focus("#t1 > summary")
    page.keyboard.press("Enter")
    assert not inner.is_visible()
    page.click("#unfold")
    assert page.evaluate(CLOSED_TURNS_SCRIPT) == 0
    page.click("#fold")
    assert page.locator("main details[open]").count() == 0
    assert errors == []


def test_the_search_of_a_page_marks_every_hit(
    open_page: OpenPage, session_with_many_turns: Path
) -> None:
    """The search counts hits, unfolds the turns that contain them, and moves from hit to hit.

    The search also finds words in highlighted code.
    """
    page, errors = open_page(session_with_many_turns)
    page.keyboard.press("/")
    page.keyboard.type("NEEDLE")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.getElementById('count').textContent === '1 of 1'")
    assert page.locator("text=The sub-agent found a needle.").is_visible()
    assert page.evaluate("() => [...CSS.highlights.get('hit')].map(String)") == ["needle"]
    page.fill("#words", "def close(pool):")
    page.press("#words", "Enter")
    page.wait_for_function("() => document.getElementById('count').textContent === '1 of 1'")
    page.fill("#words", "unanswered")
    page.wait_for_function("() => /^1 of ..+/.test(document.getElementById('count').textContent)")
    total = int(page.inner_text("#count").rpartition(" ")[2])
    assert total > 10
    page.click("#next")
    assert page.inner_text("#count") == f"2 of {total}"
    page.click("#previous")
    page.click("#previous")
    assert page.inner_text("#count") == f"{total} of {total}"
    page.fill("#words", "nowhere to be found (.*")
    page.wait_for_function("() => document.getElementById('count').textContent === 'none'")
    page.press("#words", "Escape")
    assert page.inner_text("#count") == ""
    assert errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system(
    open_page: OpenPage, session_of_every_kind: Path, scheme: str
) -> None:
    """The page has the light or dark theme of the system, and a click changes to the other theme."""
    page, _ = open_page(session_of_every_kind, color_scheme=scheme)
    before = page.evaluate(BACKGROUND_SCRIPT)
    page.click("#theme")
    after = page.evaluate(BACKGROUND_SCRIPT)
    page.click("#theme")
    assert page.evaluate(BACKGROUND_SCRIPT) == before != after
    assert (sum(map(int, before[4:-1].split(","))) > 384) == (scheme == "light")


def test_a_link_to_a_turn_unfolds_it(open_page: OpenPage, session_with_many_turns: Path) -> None:
    """A link to a turn unfolds the turn.

    The test follows a link in the page's address, one in the table of contents, and one in the
    turn's heading.
    """
    page, errors = open_page(session_with_many_turns, "#t3")
    assert page.locator("#t3").get_attribute("open") is not None
    assert page.locator("#t2").get_attribute("open") is None
    page.click("nav a[href='#t2']")
    page.locator("#t2 .body").wait_for()
    page.click("#t4 > summary a")
    page.wait_for_url("**#t4")
    page.locator("#t4 .body").wait_for()
    assert errors == []


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_page_fits_a_phone(open_page: OpenPage, session_of_every_kind: Path, width: int) -> None:
    """No content is wider than the screen of a phone, even unfolded."""
    page, errors = open_page(
        session_of_every_kind,
        viewport={"width": width, "height": 800},
        is_mobile=True,
        has_touch=True,
    )
    page.evaluate(
        "() => { for (const one of document.querySelectorAll('details')) one.open = true }"
    )
    scrolled, seen = page.evaluate(WIDTHS_SCRIPT)
    assert scrolled <= seen == width
    assert errors == []


def test_a_printed_page_is_unfolded(open_page: OpenPage, session_with_many_turns: Path) -> None:
    """All turns are unfolded while the page is printed, and folded again afterwards.

    Printing also works without scripts.
    """
    page, _ = open_page(session_with_many_turns)
    folded = page.evaluate(CLOSED_TURNS_SCRIPT)
    page.evaluate(
        f"() => addEventListener('beforeprint', () => {{ window.left = ({CLOSED_TURNS_SCRIPT})() }})"
    )
    assert len(page.pdf()) > 10_000
    assert (page.evaluate("() => window.left"), page.evaluate(CLOSED_TURNS_SCRIPT)) == (0, folded)
    assert folded > 20
    bare, _ = open_page(session_with_many_turns, java_script_enabled=False, color_scheme="dark")
    pages = [bare.pdf().count(b"/Type /Page\n")]
    bare.emulate_media(media="print")
    assert bare.evaluate(BACKGROUND_SCRIPT) == "rgb(255, 255, 255)"
    box = bare.locator("#t1 .body").bounding_box()
    assert box is not None
    assert box["height"] > 100
    assert pages[0] > 2


def test_a_page_works_without_scripts(open_page: OpenPage, session_with_many_turns: Path) -> None:
    """Without scripts, turns can be unfolded, and controls that need a script are hidden."""
    page, errors = open_page(session_with_many_turns, java_script_enabled=False)
    assert not page.locator("#words").is_visible()
    page.click("#t1 > summary .words")
    assert page.locator("#t1 .body").is_visible()
    assert errors == []


@pytest.mark.parametrize("has_scripts", [True, False])
def test_a_shared_page_says_that_it_contains_the_session(
    open_page: OpenPage,
    session_of_every_kind: Path,
    config_home: ConfigHome,
    tmp_path: Path,
    has_scripts: bool,
) -> None:
    """A shared page says at its top that the file also contains the session.

    The session data in the page is not shown, not found by the search, and not run.
    """
    told = document_of_session(session_of_every_kind, config_home)
    with open_packed_bundle(told, config_home.where) as bundle:
        (tmp_path / "shared.html").write_bytes(b"".join(bundle.build_chunks(told)))
    page, errors = open_page(tmp_path / "shared.html", java_script_enabled=has_scripts)
    assert (
        page.locator("main > aside").inner_text().startswith("This file also contains the session.")
    )
    assert page.locator("text=Fixed: it waits now.").is_visible()
    assert BUNDLE_START_TEXT.split('"')[1] not in page.locator("body").inner_text()
    if has_scripts:
        assert (
            page.evaluate("() => document.querySelector('script[data-sha256]').textContent.length")
            > 1_000
        )
        page.fill("#words", "H4sI")  # Compressed data in base64 begins with these letters.
        page.press("#words", "Enter")
        page.wait_for_function("() => document.getElementById('count').textContent === 'none'")
    assert errors == []


def test_a_page_shows_tool_calls(open_page: OpenPage, session_of_every_kind: Path) -> None:
    """The page shows edits as differences. It also shows tasks, images and sub-agents.

    Code can be copied.
    """
    page, errors = open_page(session_of_every_kind)
    assert page.locator(".d-del").inner_text().startswith("- wait=False")
    assert page.locator(".d-ins").inner_text().startswith("+ wait=True")
    assert page.locator(".tasks .completed").inner_text() == "find it"
    assert page.evaluate("() => document.querySelector('main img').naturalWidth") == 8
    page.click(".call:has(.agent) > summary b")
    page.click(".agent > summary")
    assert page.locator("text=The sub-agent found a needle.").is_visible()
    page.locator(".prose .code").first.hover()
    page.locator(".prose .code .copy").first.click()
    page.wait_for_function(
        "() => document.querySelector('.prose .code .copy').dataset.says !== 'Copy'"
    )
    assert errors == []


def test_only_code_with_a_known_digest_runs(
    open_page: OpenPage, session_of_every_kind: Path
) -> None:
    """The page's policy blocks injected scripts and styles, whose digests it does not list."""
    page, _ = open_page(session_of_every_kind)
    slipped = (
        f"<img src=x onerror='{ATTACK_SCRIPT}'><iframe srcdoc='<script>parent.{ATTACK_SCRIPT}</script>'></iframe><p "
        "style='color:red'>x"
    )
    page.evaluate("(slipped) => document.body.insertAdjacentHTML('beforeend', slipped)", slipped)
    page.evaluate(
        f"() => {{ const s = document.createElement('script'); s.text = '{ATTACK_SCRIPT}'; document.body.append(s) }}"
    )
    page.wait_for_timeout(200)
    assert page.evaluate("() => window.pwned") is None
    assert (
        page.evaluate("() => getComputedStyle(document.body.lastElementChild).color")
        != "rgb(255, 0, 0)"
    )


@pytest.mark.parametrize("group", range(6))
def test_a_hostile_transcript_is_shown_as_text(
    open_page: OpenPage, config_home: ConfigHome, group: int
) -> None:
    """Hostile text in any field of a transcript neither runs nor loads anything.

    HTML in the text does not become an element of the page.
    """
    path = write_session(config_home.project(), SESSION, hostile_records(*ATTACK_TEXTS[group::6]))
    page, errors = open_page(path)
    page.evaluate(
        "() => { for (const one of document.querySelectorAll('details')) one.open = true }"
    )
    page.mouse.move(600, 400)
    page.wait_for_timeout(300)
    found = page.evaluate(INSPECTION_SCRIPT)
    assert errors == []
    assert found["pwned"] is None
    assert set(found["elements"]) <= ALLOWED_ELEMENTS
    assert found["handlers"] == []
    assert not [
        one
        for one in found["links"]
        if not one.startswith(("#", "data:image/png;base64,", "https://"))
    ]
    # The footer is visible, so no text of the transcript hides the end of the page.
    assert page.locator("footer").is_visible()


def test_pages_of_real_sessions_open_without_errors(open_page: OpenPage) -> None:
    """The pages of real sessions fit a phone, can be searched, and cause no errors."""
    files = corpus_sessions()
    require_for_test("the transcript corpus", files, "set RESUME_HOOKS_CORPUS")
    for file in files[:: max(1, len(files) // 5)]:
        page, errors = open_page(file, viewport={"width": 390, "height": 800}, is_mobile=True)
        page.evaluate(
            "() => { for (const one of document.querySelectorAll('details')) one.open = true }"
        )
        scrolled, seen = page.evaluate(WIDTHS_SCRIPT)
        assert scrolled <= seen, file
        page.fill("#words", "the")
        page.wait_for_function("() => document.getElementById('count').textContent !== ''")
        assert errors == [], file
        page.context.close()
