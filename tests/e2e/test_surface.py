"""Tests of the module in the real client: its pane, its band, its tool for the model, and next steps."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks.hooks.session_list import pane
from resume_hooks.shared_values import COLD_CACHE_SENTENCE
from tests.builders import (
    SESSION,
    assistant,
    boundary,
    conversation,
    custom_title,
    session_bytes,
    session_id,
    store_settings,
    summary,
)
from tests.e2e.harness.client import NEWEST_VERSION, PREVIOUS_VERSION, ClientHome, Tui, find_client
from tests.e2e.harness.mock_api import MockApi, Usage, last_user_text
from tests.e2e.harness.processes import wait_until
from tests.e2e.harness.terminal import PROMPT_SIGN
from tests.e2e.plugin import LINEAGE_MARKER, children_of_session, text_of_request, wait_for_child
from tests.e2e.test_cost_card import (
    OPTIONS_FOR_200K_MODEL,
    USAGE_ABOVE_LIMIT,
    USAGE_BELOW_LIMIT,
    count_notices_after_prompts,
)
from tests.e2e.test_inside import (
    QUIET_ENV,
    RUN_ENGINE_STATEMENT,
    engine_environment,
    open_real_session,
)
from tests.needs import corpus

SMALL_SCREEN, MIDDLE_SCREEN, SCREEN_WITH_PANE_BESIDE, LARGE_SCREEN = (
    (80, 24),
    (100, 40),
    (110, 36),
    (200, 50),
)
NEXT_STEP = "fix the flaky test"
MENU_PATTERN = rf"^ *{PROMPT_SIGN} /(full|search|sessions) +(Show|Find|List) "
MAX_TYPING_TRIES = 4
HANDOFF_TOOL_NAME = "mcp__resume-hooks__handoff"


@pytest.fixture(
    params=[
        pytest.param((PREVIOUS_VERSION, SMALL_SCREEN), marks=pytest.mark.wide),
        (NEWEST_VERSION, SMALL_SCREEN),
        pytest.param((NEWEST_VERSION, LARGE_SCREEN), marks=pytest.mark.wide),
    ]
)
def sized_tui(request: pytest.FixtureRequest, home: ClientHome, api: MockApi) -> Iterator[Tui]:
    """Yield the terminal of a client that runs the plugin's module. Its screen is small or large."""
    version, (columns, rows) = request.param
    with Tui(find_client(version), home, api, columns=columns, rows=rows) as terminal:
        yield terminal


def titled_session(number: int, title: str) -> bytes:
    """Return the content of a session with two turns and a title."""
    return session_bytes(
        [*conversation(2, session_id=session_id(number)), custom_title(title, session_id(number))]
    )


@pytest.fixture
def docs_session(home: ClientHome, parent: Path) -> Path:
    """Write three more sessions in the project and one in another project.

    Returns the file of the session "Write the docs".
    """
    home.install_session(titled_session(2, "Mend the pool"), session_id(2), set_cwd=True)
    own = session_id(4)
    rows = [
        *conversation(2, session_id=own, prefix="well-"),
        assistant("before the cut", uuid="last", parent="well-3", ts=4, session_id=own),
        boundary(uuid="cut", before="last", ts=5, session_id=own),
        summary("summed up", uuid="sum", parent="cut", ts=6, session_id=own),
        custom_title("Dig the well", own),
    ]
    home.install_session(session_bytes(rows), own, set_cwd=True)
    away = home.root / "away"
    away.mkdir()
    folder = (
        home.config / "projects" / str(away).replace("/", "-").replace(".", "-").replace("_", "-")
    )
    folder.mkdir()
    rows = [{**row, "cwd": str(away)} for row in conversation(2, session_id=session_id(3))]
    (folder / f"{session_id(3)}.jsonl").write_bytes(
        session_bytes([*rows, custom_title("Far away", session_id(3))])
    )
    return home.install_session(titled_session(1, "Write the docs"), session_id(1), set_cwd=True)


def type_command(tui: Tui, command: str) -> None:
    """Type a command, and press Enter when the client's menu shows it.

    Before that, Enter would choose the skill with the same name.
    """
    tui.type(command)
    for _ in range(MAX_TYPING_TRIES * (" " not in command)):
        if wait_until(lambda: re.search(MENU_PATTERN, tui.text(), re.MULTILINE) is not None, 3):
            break
        tui.key("BSpace")
        tui.type(command[-1])
    if " " not in command:
        tui.wait_for(MENU_PATTERN, 3)
    tui.key("Enter")


def open_list_at_session(
    tui: Tui, command: str, words: str, row: str, *, must_be_idle: bool = True
) -> None:
    """Open the pane with a command, type ``words``, and wait until the row ``row`` is marked."""
    type_command(tui, command)
    tui.wait_for("newest first")
    tui.wait_for("look into it")
    tui.type(words)
    tui.wait_for(f"> {row}")
    if must_be_idle:
        tui.wait_until_idle()


def choose_action(tui: Tui, name: str, press_count: int) -> None:
    """Press Down ``press_count`` times, wait for the action ``name``, and press Enter."""
    for _ in range(press_count):
        tui.key("Down")
    tui.wait_for(name)
    tui.wait_until_idle()
    tui.key("Enter")


def open_page_of_session(tui: Tui, row: str) -> None:
    """Open the page of the marked session, whose row in the list is ``row``."""
    tui.wait_until_idle()
    tui.key("Enter")
    tui.wait_for("read on .*hand off .*list")
    assert f"> {row}" not in tui.text()


def test_the_pane_lists_finds_opens_forks_and_hands_off_sessions(
    sized_tui: Tui, plugin: Path, docs_session: Path
) -> None:
    """The pane lists, finds, opens and forks sessions, undoes a compaction, and makes a handoff.

    None of these actions sends a request. The next prompt continues the opened session. Letters
    that the user types on a session's page open the list again and search it.
    """
    tui = sized_tui
    open_real_session(tui, plugin)
    open_list_at_session(tui, "/search", "hook_registry", "We should add the agent")
    open_page_of_session(tui, "We should add the agent")
    assert re.search("hook_registry", tui.text().rpartition("hook_registry")[0]), (
        "the page shows the words"
    )
    tui.key("Escape")
    tui.wait_until_gone("Esc closes|look into it")
    type_command(tui, "/search docs")
    tui.wait_for("> Write the docs")
    open_page_of_session(tui, "Write the docs")
    tui.type("fuh")
    tui.wait_for(r"docs\s+fuh\s+⏎ look into it")
    for _ in "fuh":
        tui.key("BSpace")
    tui.wait_for("> Write the docs")
    open_page_of_session(tui, "Write the docs")
    choose_action(tui, "continues this session", 0)
    tui.wait_for("answer 3")
    tui.wait_until_idle()
    open_list_at_session(tui, "/sessions", "docs", "Write the docs")
    open_page_of_session(tui, "Write the docs")
    assert "undo compaction" not in tui.text()
    assert len(forks_of_session(tui, docs_session)) == 0
    choose_action(tui, "opens a copy; this session stays as it is", 2)
    tui.wait_for("This is the new session, Write the docs · fork: about")
    tui.wait_until_idle()
    assert len(forks_of_session(tui, docs_session)) == 1
    open_list_at_session(tui, "/sessions", "well", "Dig the well")
    open_page_of_session(tui, "Dig the well")
    choose_action(tui, "opens a copy from before the compaction", 3)
    tui.wait_for("before the cut")
    tui.wait_until_idle()
    open_list_at_session(tui, "/sessions", "pool", "Mend the pool")
    open_page_of_session(tui, "Mend the pool")
    choose_action(tui, "opens a new session that knows this one", 1)
    tui.wait_for("Handed off from")
    tui.wait_until_idle()
    assert not tui.api.requests
    tui.submit("now go on GAMMA")
    tui.wait_for("Mock reply 1")
    said = text_of_request(tui.api.main_requests()[-1])
    assert LINEAGE_MARKER in said
    assert "Mend the pool" in said


def visible_line_numbers(tui: Tui) -> list[int]:
    """Return the numbers of the lines "line NNN" on the screen."""
    return [int(number) for number in re.findall(r"^\W*line (\d{3})", tui.text(), re.MULTILINE)]


@pytest.mark.parametrize(
    "size", [SMALL_SCREEN, pytest.param(MIDDLE_SCREEN, marks=pytest.mark.wide)]
)
def test_a_hit_opens_at_its_line_and_scrolls(
    home: ClientHome,
    api: MockApi,
    plugin: Path,
    parent: Path,
    tmp_path: Path,
    size: tuple[int, int],
) -> None:
    """From the pane, a session opens at the line of the hit, and scrolling skips no line.

    Words that are typed while the pane is opening all appear in its search field, in order.
    """
    own, words = session_id(5), "fauh huaf in the far hall of a hub"
    lines = [f"line {number:03}{f' {words}' if number == 60 else ''}" for number in range(1, 121)]
    rows = [
        *conversation(1, session_id=own),
        assistant("\n".join(lines), uuid="long", parent="r0", ts=5, session_id=own),
        custom_title("Paint the hall", own),
    ]
    home.install_session(session_bytes(rows), own, set_cwd=True)
    with Tui(find_client(NEWEST_VERSION), home, api, columns=size[0], rows=size[1]) as tui:
        open_real_session(
            tui, plugin, engine_environment(tmp_path, f"time.sleep(0.7); {RUN_ENGINE_STATEMENT}")
        )
        before = set(home.sessions())
        type_command(tui, "/search")
        for letter in words:
            tui.type(letter)
            time.sleep(0.04)
        tui.wait_for("> Paint the hall")
        tui.wait_for("the model")
        open_page_of_session(tui, "Paint the hall")
        assert re.search(rf"│\s+{words}\s+⏎ read on", tui.text()), tui.text()
        tui.wait_for(f"line 060 {words}")
        tui.wait_until_idle()
        shown = visible_line_numbers(tui)
        assert shown == list(range(59, 59 + len(shown)))
        tui.key("Enter")
        tui.wait_for(f"line {shown[-1] + 1:03}")
        tui.wait_until_idle()
        further = visible_line_numbers(tui)
        assert further[: len(shown)] == [number + len(shown) for number in shown]
        choose_action(tui, "the text before", 1)
        tui.wait_for(f"line 060 {words}")
        assert set(home.sessions()) == before
        tui.key("Escape")
        tui.wait_until_gone("line 060")
        assert re.search(rf"{PROMPT_SIGN} *$", tui.text(), re.MULTILINE), (
            "no letter is left in the prompt"
        )
        type_command(tui, "/search")
        tui.type("hall")
        time.sleep(0.2)
        # Enter is pressed before the list appears and must not be sent to the model.
        tui.key("Enter")
        tui.wait_for("> Paint the hall")
        tui.wait_for("the model")
        assert re.search(r"\s+hall\s+⏎ look into it", tui.text()), tui.text()
        assert not tui.api.requests


@pytest.mark.parametrize(
    ("size", "row_count"),
    [(SMALL_SCREEN, 6), pytest.param(MIDDLE_SCREEN, 11, marks=pytest.mark.wide)],
)
def test_a_small_pane_shows_one_session_on_each_line(
    home: ClientHome,
    api: MockApi,
    plugin: Path,
    parent: Path,
    size: tuple[int, int],
    row_count: int,
) -> None:
    """In a small pane, each session takes one line, and the lines fill a third of the screen.

    This is true before and after the user types search words. If a card is open, the pane closes
    it.
    """
    for number in range(1, 15):
        home.install_session(
            titled_session(number, f"Task {number}"), session_id(number), set_cwd=True
        )
    with Tui(find_client(NEWEST_VERSION), home, api, columns=size[0], rows=size[1]) as tui:
        open_real_session(tui, plugin)
        type_command(tui, "/full")
        tui.wait_for("Enter: table")
        type_command(tui, "/sessions")
        tui.wait_for("newest first")
        tui.wait_until_idle()
        assert len(re.findall(r"│ [> ] (?:Task \d|We should)", tui.text())) == row_count, tui.text()
        tui.type("answer")
        tui.wait_for("the model · turn")
        tui.wait_until_idle()
        assert len(re.findall(r"│ [> ] Task \d", tui.text())) == row_count, tui.text()


ENGINE_SCRIPT_WITH_SLOW_SEARCH = (
    "raw = sys.stdin.buffer.read(); time.sleep(8 * (b'\"said\"' in raw)); "
    f"out, into = os.pipe(); os.write(into, raw); os.close(into); os.dup2(out, 0); {RUN_ENGINE_STATEMENT}"
)
"""A fake engine that lists titles immediately, but takes eight seconds to search the messages."""


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(SMALL_SCREEN, marks=pytest.mark.wide),
        SCREEN_WITH_PANE_BESIDE,
        pytest.param(LARGE_SCREEN, marks=pytest.mark.wide),
    ],
)
def test_a_pane_names_its_actions_and_unopenable_sessions(
    home: ClientHome,
    api: MockApi,
    plugin: Path,
    docs_session: Path,
    tmp_path: Path,
    size: tuple[int, int],
) -> None:
    """The pane names the actions for a session, and reports sessions that cannot be opened here.

    Text that is typed before the pane has opened appears in its search field. For a session in
    another folder, the pane copies the command that opens the session there. For a missing session,
    it says that the session no longer exists. Enter opens the marked session even while a search is
    running.
    """
    with Tui(find_client(NEWEST_VERSION), home, api, columns=size[0], rows=size[1]) as tui:
        open_real_session(tui, plugin, engine_environment(tmp_path, ENGINE_SCRIPT_WITH_SLOW_SEARCH))
        type_command(tui, "/sessions")
        for letter in "docs":
            tui.type(letter)
            time.sleep(0.04)
        tui.wait_for("> Write the docs")
        open_page_of_session(tui, "Write the docs")
        tui.wait_for("continues this session")
        tui.key("Escape")
        tui.wait_until_gone("continues this session")
        assert re.search(rf"{PROMPT_SIGN} *$", tui.text(), re.MULTILINE), (
            "no letter is left in the prompt"
        )
        open_list_at_session(tui, "/sessions --all", "far", "Far away")
        open_page_of_session(tui, "Far away")
        choose_action(tui, "copies the command for", 0)
        tui.wait_for("belongs to another folder")
        tui.wait_for(rf"claude\s+--resume\s+{session_id(3)[:8]}")
        open_list_at_session(tui, "/search", "docs", "Write the docs")
        docs_session.unlink()
        tui.key("Enter")
        tui.wait_for("no longer exists")
        tui.key("Escape")
        tui.wait_until_gone("Esc closes")
        assert not tui.api.requests


def forks_of_session(tui: Tui, session: Path) -> list[Path]:
    """Return the forks of a session."""
    marker = f'"sessionId":"{session.stem}"'
    return [
        path for path in tui.home.sessions() if marker in path.read_text()[:-9] and path != session
    ]


@pytest.mark.parametrize(
    ("size", "engine_script"),
    [
        (SMALL_SCREEN, f"time.sleep(0.7); {RUN_ENGINE_STATEMENT}"),
        pytest.param(SMALL_SCREEN, "", marks=pytest.mark.wide),
        pytest.param(MIDDLE_SCREEN, "", marks=pytest.mark.wide),
        pytest.param(LARGE_SCREEN, "", marks=pytest.mark.wide),
        pytest.param(
            LARGE_SCREEN, f"time.sleep(0.7); {RUN_ENGINE_STATEMENT}", marks=pytest.mark.wide
        ),
    ],
    ids=["small-slow", "small", "middle", "large", "large-slow"],
)
def test_fast_keys_do_not_leave_the_list(
    home: ClientHome,
    api: MockApi,
    plugin: Path,
    parent: Path,
    tmp_path: Path,
    size: tuple[int, int],
    engine_script: str,
) -> None:
    """Arrow keys pressed in quick succession each mark the next row and never leave the list.

    Enter opens the marked session, and no new session is made.
    """
    for number in range(1, 31):
        own = session_id(100 + number)
        path = home.install_session(
            session_bytes(
                [*conversation(1, session_id=own), custom_title(f"Talk {number:02}", own)]
            ),
            own,
            set_cwd=True,
        )
        os.utime(path, (time.time() - 60 * number,) * 2)
    columns, rows = size
    with Tui(find_client(NEWEST_VERSION), home, api, columns=columns, rows=rows) as tui:
        open_real_session(
            tui, plugin, engine_environment(tmp_path, engine_script) if engine_script else {}
        )
        before = set(home.sessions())
        type_command(tui, "/sessions")
        tui.wait_for("> .*Teach|> ")
        tui.wait_for("Talk 01")
        tui.wait_until_idle()
        pressed = 0
        for keys in (["Down"] * 5, ["Down"] * 7, ["Up"] * 4, ["Down"] * 2):
            for key in keys:
                tui.key(key)
                time.sleep(0.03)
                pressed += 1 if key == "Down" else -1
            tui.wait_until_idle()
            assert marked_title(tui) == f"Talk {pressed:02}", tui.text()
        for key, end in (("Down", "Talk 30"), ("Up", "Talk 01")):
            for _ in range(40 if key == "Down" else 29):
                tui.key(key)
                time.sleep(0.02)
            tui.wait_until_idle()
            assert marked_title(tui) == end
        for key in ("Down", "Down", "Down", "Enter"):
            tui.key(key)
            time.sleep(0.03)
        tui.wait_until_idle(3)
        if "read on" not in tui.text():  # On a busy machine, the client may ignore the pressed key.
            assert marked_title(tui) == "Talk 04"
            tui.key("Enter")
        choose_action(tui, "continues this session", 0)
        tui.wait_for(f"{PROMPT_SIGN} prompt 0")
        tui.wait_until_idle()
        assert set(home.sessions()) == before
        tui.submit("now go on GAMMA")
        tui.wait_for("Mock reply 1")
        tui.wait_until_idle()
        assert "now go on GAMMA" in (home.project_folder / f"{session_id(104)}.jsonl").read_text()


def marked_title(tui: Tui) -> str:
    """Return the title of the marked session in the list."""
    found = re.findall(r"> (Talk \d\d)", tui.text())
    assert len(found) == 1, tui.text()
    return str(found[0])


def visible_actions(tui: Tui) -> set[str]:
    """Return the actions and sizes in those rows on the screen that show three numbers."""
    figures = r" +[\d.]+[kM]? +[\d.]+[kM]? +[\d.]+[kM]?  \w"
    return {
        row.strip()
        for row in re.findall(rf"(go on|trim|handoff \w+|rollover|compact){figures}", tui.text())
    }


def test_a_key_shows_the_card_s_table(sized_tui: Tui, plugin: Path) -> None:
    """Enter on the ``/full`` card shows its table, and Enter on the table returns to the card.

    The table has the same rows as ``/resume-hooks:resume --table``. Esc closes the card, and so
    does the end of the next turn.
    """
    tui = sized_tui
    tui.api.usage = Usage(input_tokens=10, cache_read_input_tokens=30_000)
    tui.start(
        OPTIONS_FOR_200K_MODEL,
        plugin_dir=plugin,
        extra_env=QUIET_ENV | {"RESUME_HOOKS_COMPACTION": "client"},
    )
    count_notices_after_prompts(tui, 1)
    tui.api.usage = USAGE_ABOVE_LIMIT
    count_notices_after_prompts(tui, 2)
    type_command(tui, "/full")
    tui.wait_for(r"90 % of 180,000\. /handoff leaves [\d,]+ tokens; /handoff fits best:")
    tui.wait_for("Enter: table +Esc closes")
    assert visible_actions(tui) == set()
    tui.key("Enter")
    tui.wait_for("estimated +leaves")
    shown = visible_actions(tui)
    for _ in range(10):
        tui.key("Down")
        tui.wait_until_idle()
        shown |= visible_actions(tui)
    tui.wait_for("cache: .* left")
    tui.key("Enter")
    tui.wait_for("Enter: table +Esc closes")
    tui.key("Escape")
    tui.wait_until_gone("Esc closes")
    type_command(tui, "/full")
    tui.wait_for("Enter: table")
    type_command(tui, "/full")
    tui.wait_for("Enter: table")
    tui.wait_until_idle()
    assert "full-1" not in tui.text()
    tui.type("try it")
    tui.wait_for("try it")
    tui.key("C-u")
    tui.wait_until_gone("try it")
    count_notices_after_prompts(tui, 3)
    tui.wait_until_gone("Esc closes")
    tui.submit("/resume-hooks:resume")
    tui.wait_for(
        r"90 % of 180,000\. /resume-hooks:handoff leaves [\d,]+ tokens;\s+/resume-hooks:handoff fits best"
    )
    tui.wait_for("Table: /resume-hooks:resume --table")
    tui.wait_until_idle()
    tui.submit("/resume-hooks:resume --table")
    tui.wait_for("Best: /resume-hooks:handoff")
    tui.wait_for(r"go on +162k +16k +\d+k  everything")
    tui.wait_for("cache: .* left")
    tui.wait_for("trim +nothing to trim")
    tui.wait_for(r"pays off (after prompts: handoff|within 200 prompts)")
    sizes = {f"handoff {size}" for size in ("1k", "4k", "12k", "24k", "all")}
    assert shown == {"go on", "rollover", "compact", *sizes}
    assert shown == visible_actions(tui)
    assert len(tui.api.main_requests()) == 3


def test_a_pane_and_a_card_open_while_the_model_works(
    tui: Tui, plugin: Path, docs_session: Path
) -> None:
    """While the model is working, the pane and the card open, and Esc closes only the pane.

    Esc does not interrupt the model. A card that was opened during a turn stays open when the turn
    ends.
    """
    open_real_session(tui, plugin)
    tui.api.script = [(120.0, "Slow reply done.")]
    tui.submit("take your time")
    tui.wait_for(r"esc to interrupt|…")
    open_list_at_session(tui, "/search", "docs", "Write the docs", must_be_idle=False)
    tui.key("Escape")
    tui.wait_until_gone("Esc closes|look into it")
    type_command(tui, "/full")
    tui.wait_for("Enter: table")
    tui.api.release_delayed_replies()
    tui.wait_for("Slow reply done")
    assert "Interrupted" not in tui.text()
    tui.wait_until_idle()
    tui.wait_for("Enter: table")
    tui.key("Escape")
    tui.wait_until_gone("Esc closes")
    assert len(tui.api.main_requests()) == 1


@pytest.mark.parametrize(
    ("failing_script", "shown_pattern"),
    [
        ("sys.exit('the engine is ill')", "the engine is ill"),
        pytest.param("time.sleep(60)", "Sessions|words of a title", marks=pytest.mark.wide),
    ],
    ids=["fails", "hangs"],
)
def test_a_pane_reports_a_failing_engine(
    tui: Tui, plugin: Path, parent: Path, tmp_path: Path, failing_script: str, shown_pattern: str
) -> None:
    """If the engine fails, the pane reports it, Esc closes the pane, and the next prompt is answered."""
    first = json.dumps({"pane": pane.open_pane("")})
    open_real_session(
        tui,
        plugin,
        engine_environment(
            tmp_path, f"print({first!r}) if '\"search\"' in sys.stdin.read() else {failing_script}"
        ),
    )
    type_command(tui, "/search")
    tui.wait_for("look into it")
    tui.wait_for(shown_pattern)
    tui.type("abc")
    tui.wait_for("abc")
    tui.key("Escape")
    tui.wait_until_gone("abc")
    tui.submit("still here GAMMA")
    tui.wait_for("Mock reply 1")


def test_a_band_shows_how_full_the_context_is(home: ClientHome, api: MockApi, plugin: Path) -> None:
    """The band appears after the turn that exceeds the limit, and shows how full the context is.

    If a session is already full, the band appears at the start. The Stop hook prints nothing. If a
    session is opened long after its last turn, one line first reports that the prompt cache has
    expired.
    """
    records = conversation(1, session_id=SESSION)
    records[-1]["message"]["usage"] = USAGE_BELOW_LIMIT.as_dict()
    full = home.install_session(session_bytes(records), SESSION, set_cwd=True)
    columns, rows = SMALL_SCREEN
    for number, shown in ((1, False), (2, True)):
        with Tui(find_client(NEWEST_VERSION), home, api, columns=columns, rows=rows) as tui:
            tui.start(
                plugin_dir=plugin,
                extra_env=QUIET_ENV | {"RESUME_HOOKS_COMPACTION": "client"},
                resume=SESSION,
            )
            tui.wait_until_idle()
            if shown:
                tui.wait_for("% of 180,000")
            else:
                tui.wait_for(
                    r"The\s+prompt\s+cache\s+expired;\s+your\s+next\s+prompt\s+resends\s+all\s+130,0\d\d\s+tokens"
                )
                assert tui.text().count("your next prompt") == 1
            assert ("of 180,000" in tui.text()) is shown
            api.usage = USAGE_ABOVE_LIMIT
            count_notices_after_prompts(tui, 2 * number - 1)
            tui.wait_for(r"90 % of 180,000 · /handoff")
            tui.wait_for("90% context used")  # The client itself shows this number.
            count_notices_after_prompts(tui, 2 * number)
            assert tui.text().count("of 180,000") == 1
            assert "Stop says" not in tui.text()
            if shown:
                asked = len(api.requests)
                tui.submit(f"/handoff {NEXT_STEP}")
                tui.wait_for("Handed off from")
                tui.wait_until_gone("of 180,000")
                tui.wait_until_idle()
                assert len(api.requests) == asked
                assert children_of_session(home, full)
    for words in ("of 180,000", "cache expired"):
        assert words not in json.dumps(api.requests)


def test_the_module_reports_an_expired_cache(home: ClientHome, api: MockApi, plugin: Path) -> None:
    """Each time the user opens a session whose prompt cache has expired, the module reports this once.

    The client does not show the hook's output when it resumes a session. The report is about the
    opened session, not about the one that the user left.
    """
    source = corpus() / "gmeligio__flutter-docker-image/12910ac6-acd5-45da-be15-84a7817db5d4.jsonl"
    cold = home.install_session(source, source.stem, set_cwd=True)
    other = home.install_session(
        session_bytes(conversation(1, session_id=SESSION)), SESSION, set_cwd=True
    )
    with Tui(find_client(NEWEST_VERSION), home, api) as tui:
        tui.start(plugin_dir=plugin, extra_env=QUIET_ENV, resume=source.stem)
        tui.wait_for(r"prompt\s+cache\s+expired", 20)
        assert "SessionStart:resume says" not in tui.text()
        tui.submit(f"/resume {SESSION}")
        tui.wait_until_gone("cache")
        tui.wait_until_idle()
        tui.submit(f"/resume {source.stem}")
        tui.wait_for(r"prompt\s+cache\s+expired", 20)
        tui.wait_until_idle()
        assert wait_until(lambda: cold.read_text().count(COLD_CACHE_SENTENCE) == 2)
    assert COLD_CACHE_SENTENCE not in other.read_text()


def prompt_until_tool_is_offered(tui: Tui) -> None:
    """Send prompts until a request offers the handoff tool to the model.

    The client may send the first prompt before the module has registered the tool.
    """

    def is_offered() -> bool:
        asked = len(tui.api.main_requests())
        tui.submit("are you there?")
        assert wait_until(lambda: len(tui.api.main_requests()) > asked)
        tui.wait_until_idle()
        return HANDOFF_TOOL_NAME in json.dumps(tui.api.main_requests()[-1])

    assert wait_until(is_offered)


def test_the_model_may_ask_for_a_handoff_if_allowed(tui: Tui, plugin: Path, parent: Path) -> None:
    """With the setting ``handoff_tool``, the model may ask the user for a handoff.

    If the user says no, the model is told so and no child is made. If the user agrees, the child
    opens at the end of the turn. The next step is in the input box but is not sent.
    """
    store_settings(tui.home.config, handoff_sends="on")
    open_real_session(tui, plugin, {"RESUME_HOOKS_HANDOFF_TOOL": "on"})
    prompt_until_tool_is_offered(tui)
    for key, told in (("Enter", "The user said no"), ("2", "The user agreed")):
        tui.api.clear_requests()
        tui.api.script = [
            {"name": HANDOFF_TOOL_NAME, "input": {"next_step": NEXT_STEP}},
            "Then I end my turn.",
        ]
        tui.submit(f"go on {key}")
        tui.wait_for(rf"for\s+the\s+input\s+box:\s+{NEXT_STEP}")
        tui.wait_until_idle(2)
        assert children_of_session(tui.home, parent) == []
        tui.key(key)
        tui.wait_for("Then I end my turn|Handed off from")
        tui.wait_until_idle()
        assert told in last_user_text(tui.api.main_requests()[-1])
    tui.wait_for("Handed off from")
    tui.wait_until_idle()
    child = wait_for_child(tui.home, parent)
    assert tui.input_text() == NEXT_STEP
    assert len(tui.api.main_requests()) == 2
    assert "Then I end my turn." in child.read_text()


def test_a_next_step_is_sent_if_the_user_chose_it(
    modern_tui: Tui, plugin: Path, parent: Path, tmp_path: Path
) -> None:
    """With the setting ``handoff_sends``, ``/handoff`` sends the next step as the user's prompt.

    A draft stays in the input box. The request does not offer the handoff tool to the model.
    """
    store_settings(modern_tui.home.config, handoff_sends="on")
    open_real_session(
        modern_tui, plugin, engine_environment(tmp_path, f"time.sleep(2); {RUN_ENGINE_STATEMENT}")
    )
    modern_tui.submit(f"/handoff {NEXT_STEP}")
    modern_tui.type("a draft of mine")
    modern_tui.wait_for("Mock reply 1")
    modern_tui.wait_until_idle()
    (request,) = modern_tui.api.main_requests()
    assert last_user_text(request).endswith(NEXT_STEP)
    assert "plugin sent a message" not in text_of_request(request)
    assert LINEAGE_MARKER in text_of_request(request)
    assert HANDOFF_TOOL_NAME not in json.dumps(request)
    assert modern_tui.input_text() == "a draft of mine"
