"""Settings: one table of keys, read from our file, then the environment, then the plugin's options.

Later wins.

Every trigger reads them: standard library only. ``storage.stored_settings`` writes the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from resume_hooks import part_table
from resume_hooks.errors import UsageError
from resume_hooks.paths import (
    MAX_OBJECT,
    Where,
    is_projects_state,
    read_object,
    read_regular,
    why_not_state,
)
from resume_hooks.seam import with_parts
from resume_hooks.shared_values import MODEL_SECONDS

Value = int | str | tuple[str, ...]
FILE_NAME = "settings.json"
VAULT = "20G"
USUAL_SIZE = "12k"  # of a handoff
VERSION = 1  # the form of the file; a newer one is read but not written

_MODEL = r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}"  # a Bedrock profile or a deployment, too; no option of the client
_HANDOFF_SIZE = r"(?:[1-9]|[1-3][0-9]|4[0-8])k"
_COMPACTION = rf"client|(?:trim|{_HANDOFF_SIZE})(?:@(?:[6-9][0-9]|[1-9][0-9]{{2,3}})k)?"
_FORMER_COMPACTION = re.compile(r"\Ahandoff(?=@|\Z)")  # of 0.2.0, which had one size
_BYTES = re.compile(r"([0-9]{1,15})([KMGT]?)I?B?")
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_PATH = r"[^\x00-\x1f\x7f]{0,1000}"


class Key(NamedTuple):
    """One setting: its default, what it does, and how a typed or stored value becomes one of ours.

    ``names_files``: its values name files or folders of the user's. ``title`` names it among the
    plugin's options, which the client stores; ``""``: it is not an option. ``stored_only``: no
    variable sets it, since a repository that you trust can set variables, and it decides where
    something is written or sent.
    """

    default: Value
    about: str
    read: Callable[[object], Value]
    names_files: bool = False
    title: str = ""
    stored_only: bool = False


class Setting(NamedTuple):
    """A value in force and where it came from: default, file, environment or plugin."""

    value: Value
    source: str


def _number_form(low: int, high: int) -> Callable[[object], Value]:
    def read(raw: object) -> Value:
        raw = int(raw) if isinstance(raw, float) and raw.is_integer() else raw  # JSON of others
        if isinstance(raw, (int, str)) and not isinstance(raw, bool):
            text = str(raw)
        else:
            text = ""
        if not (text.isascii() and text.isdigit()) or not low <= int(text[:20]) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return read


def _choice_form(*choices: str) -> Callable[[object], Value]:
    def read(raw: object) -> Value:
        if raw not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return str(raw)

    return read


def parse_switch(raw: object) -> Value:
    """Read ``on`` or ``off``; the client stores true and false."""
    said = "on" if raw in (True, "true") else "off" if raw in (False, "false") else raw
    return _choice_form("on", "off")(said)


def _parse_clipboard(raw: object) -> Value:
    """Read the name of a way to the clipboard; ``off`` means ``none``."""
    if raw == "off":
        return "none"
    return _choice_form("auto", "pyperclip", "native", "tmux", "osc52", "none")(raw)


def _pattern_form(pattern: str, what: str) -> Callable[[object], Value]:
    def read(raw: object) -> Value:
        if not isinstance(raw, str) or not re.fullmatch(pattern, raw):
            raise ValueError(what)
        return raw

    return read


def _parse_compaction(raw: object) -> Value:
    """Read a way to compact, or the size of a handoff; ``handoff``, as in version 0.2.0, means the usual size."""
    now = _FORMER_COMPACTION.sub(USUAL_SIZE, raw) if isinstance(raw, str) else raw
    sizes = "a size such as 24k, up to 48k"
    return _pattern_form(
        _COMPACTION, f"client, trim, or {sizes}; the latter two from 60k tokens on also as 24k@150k"
    )(now)


def _path_form(ending: str, what: str) -> Callable[[object], Value]:
    """The form of a path with this ending; ``""`` means no path."""
    return _pattern_form(rf"(?:{_PATH}{re.escape(ending)})?", what)


def _parse_vault(raw: object) -> Value:
    """Read a size such as ``20G``, which stays as it was written, or ``off``; ``on`` means the usual size."""
    if raw in ("on", "off"):  # no set: a list in the file has no hash
        if raw == "on":
            return VAULT
        return "off"
    if isinstance(raw, (int, str)) and not isinstance(raw, bool):
        text = str(raw).strip().upper()
    else:
        text = ""
    if not _BYTES.fullmatch(text):
        raise ValueError("a size, such as 500M or 20G, on or off")
    return text


def _parse_words(raw: object) -> Value:
    words = raw.replace(",", " ").split() if isinstance(raw, str) else raw
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise ValueError("words, separated by commas")
    return tuple(word.lower().lstrip(">/") for word in words)


FORMS: dict[str, Callable[..., Callable[[object], Value]]] = {
    "number": _number_form,
    "one of": _choice_form,
    "path": _path_form,
}
"""The forms that a part's own setting may have."""

_CORE: dict[str, Key] = {
    "context_window": Key(
        0,
        "Tokens of the model's context window; 0 = told by the session.",
        _number_form(0, 10_000_000),
    ),
    "clipboard": Key(
        "auto",
        "The way to the clipboard: auto, pyperclip, native, tmux, osc52 or none.",
        _parse_clipboard,
    ),
    "summary_model": Key(
        "haiku",
        (
            "Model that writes summaries and picks for trim --smart; once set, /rollover "
            "asks it on a warm cache, too."
        ),
        _pattern_form(_MODEL, "the name of a model, such as haiku"),
    ),
    "notice_percent": Key(
        80,
        "Show a line, once a session, when this much of the context is used, in per cent; 0 = off.",
        _number_form(0, 100),
        title="When to tell that a session fills up",
    ),
    "compaction": Key(
        "client",
        "What Claude Code does when a session is full: client = its own summary; in place, without a model: trim, "
        "or a size such as 24k = what a handoff of that size carries. trim@150k, 24k@150k: between turns, from so many "
        "tokens on.",
        _parse_compaction,
        title="What happens to a full session",
    ),
    "handoff_size": Key(
        USUAL_SIZE,
        (
            "Tokens that a handoff carries at most, 1k to 48k: what was said, and lists of "
            "files, commands and failures."
        ),
        _pattern_form(_HANDOFF_SIZE, "a size such as 4k or 24k, up to 48k"),
        title="How much a handoff carries",
    ),
    "handoff_sends": Key(
        "off",
        (
            "Whether /handoff sends its next step, where it opens the session; off = it "
            "waits in the box."
        ),
        parse_switch,
        title="Send a handoff's next step",
        stored_only=True,
    ),
    "handoff_tool": Key(
        "off",
        "Whether the model may ask for a handoff; you are asked each time, natively.",
        parse_switch,
        title="Let the model ask for a handoff",
    ),
    "vault": Key(
        VAULT,
        "Bytes that ancestors, and sessions that the client is about to delete, may take in the vault, such as "
        "500M or 40G, before the oldest go; 0 = no limit, off = none is archived.",
        _parse_vault,
        title="Room for archived copies",
    ),
    "team_model_search": Key(
        "off",
        "Whether a model may search the team, which sends its words to the server.",
        parse_switch,
        title="Let a model search the team",
        stored_only=True,
    ),
    "triggers_off": Key(
        (),
        (
            "Triggers that are switched off, such as 'full, recall'; typed as a prompt they "
            "go to the model unchanged."
        ),
        _parse_words,
    ),
}


FORMER = {
    "index_at_start": "every start updates the search index in the background",
    "vault_max": "vault takes the size, too: config vault 40G",
    "vault_days": "archived copies stay until the vault is full",
    "threshold": "give --threshold to each trim",
    "keep_recent": "give --keep-recent to each trim",
    "ledger_file": (
        "handoff_dir leaves a document of each handoff in the project, and lineage names the "
        "latest session"
    ),
    "summary_timeout": f"a model has {MODEL_SECONDS} seconds; rollover and trim --smart take --timeout",
}
"""Settings of former versions, each with what replaces it."""


_OF_PARTS = {
    name: Key(
        default, about, FORMS[form](*given), names_files=form == "path", stored_only=form == "path"
    )
    for name, (_, default, about, form, given, _) in part_table.SETTINGS.items()
}
KEYS = {name: _CORE.get(name) or _OF_PARTS[name] for name in with_parts(_CORE, part_table.SETTINGS)}


def load(where: Where | None = None) -> dict[str, Setting]:
    """Every setting with its source.

    Where a value is unreadable, that of the next weaker source is in force.
    """
    settings = {}
    for name, key in KEYS.items():
        settings[name] = Setting(key.default, "default")
    for name, source, raw in _setting_values(KEYS, where or Where()):
        try:
            settings[name] = Setting(KEYS[name].read(raw), source)
        except ValueError:
            continue  # doctor reports it; a trigger goes on with the weaker source
    return settings


def value_text(value: Value) -> str:
    """A setting's value for people."""
    return (", ".join(value) if isinstance(value, tuple) else str(value)) or "(empty)"


def number(name: str, where: Where | None = None) -> int:
    """The value in force of a setting that is a number."""
    value = load(where)[name].value
    if not isinstance(value, int):
        raise TypeError(f"{name} is not a number")
    return value


def is_on(name: str, where: Where | None = None) -> bool:
    """Whether a setting that is on or off is on."""
    return load(where)[name].value == "on"


def vault_room(where: Where | None = None) -> int | None:
    """Bytes that archived sessions may take, 0 for no limit; None if the vault is off."""
    text = _BYTES.fullmatch(str(load(where)["vault"].value))
    if text:
        return int(text[1]) * _UNITS[text[2]]
    return None


def without_variables(where: Where) -> Where:
    """The same places without the settings in the environment, which a repository that you trust can set."""
    kept = {}
    for name, value in where.environ.items():
        if (
            not name.startswith("CLAUDE_PLUGIN_OPTION_")
            and name.removeprefix("RESUME_HOOKS_").lower() not in KEYS
        ):
            kept[name] = value
    return Where(kept)


def unusable_settings(where: Where | None = None) -> list[str]:
    """One sentence on each setting that can't be used."""
    where = where or Where()
    path = settings_file(where)
    if not read_object(path) and is_damaged(path):
        sentences = [f"{path} is not a readable settings file"]
    else:
        sentences = []
    for name, source, raw in _setting_values(KEYS, where):
        try:
            KEYS[name].read(raw)
        except ValueError as error:
            sentences.append(f"{name} ({source}) must be {error}, not {raw!r}")
    if is_projects_state(where):
        sentences.append(
            f"{where.state} lies in a project: its settings for a team and for documents "
            "are ignored"
        )
    environ = where.environ
    own = environ.get("RESUME_HOOKS_HOME", "")
    if own and (why := why_not_state(own, environ)):
        sentences.append(f"RESUME_HOOKS_HOME has no effect: {why}")
    for name, key in KEYS.items():
        if key.stored_only and environ.get(_variable_name(name)):
            sentences.append(
                f"{name} is set by no variable ({_variable_name(name)}): resume-hooks "
                f"config {name} sets it"
            )
    return sentences


def former_settings_in_use(where: Where | None = None) -> list[str]:
    """One sentence on each former setting that still has a value."""
    return [
        f"{name} ({source}) is ignored: {FORMER[name]}."
        for name, source, _ in _setting_values(FORMER, where or Where())
    ]


def read_one(name: str, text: str) -> Value:
    """The value of one setting as typed. UsageError for an unknown key or a bad value."""
    key = KEYS.get(name)
    if key is None:
        raise UsageError(f"There is no setting '{name}'", f"Settings: {', '.join(KEYS)}.")
    try:
        return key.read(text)
    except ValueError as error:
        raise UsageError(f"{name} must be {error}, not '{text}'") from error


def settings_file(where: Where | None = None) -> str:
    """The path of our settings file."""
    return os.path.join((where or Where()).state, FILE_NAME)


def _plugin_options(where: Where) -> dict[str, object]:
    """The plugin's options as the client stores them, none if it is switched off.

    Only hooks get them as variables.
    """
    document = read_object(os.path.join(where.config, "settings.json"))
    plugins, switched = document.get("pluginConfigs"), document.get("enabledPlugins")
    if isinstance(switched, dict):
        off = set()
        for name, on in switched.items():
            if on is False:
                off.add(name)
    else:
        off = set()
    found: dict[str, object] = {}
    for name, stored in plugins.items() if isinstance(plugins, dict) else ():
        if isinstance(stored, dict):
            options = stored.get("options")
        else:
            options = None
        if name.startswith("resume-hooks@") and name not in off and isinstance(options, dict):
            found |= options
    return found


def _setting_values(names: Iterable[str], where: Where) -> Iterator[tuple[str, str, object]]:
    """The values given for settings as (name, source, raw), the weakest first.

    Empty ones count as not given.
    """
    stored, options = read_object(settings_file(where)), _plugin_options(where)
    decisive = set()
    for name, key in KEYS.items():
        if key.stored_only:
            decisive.add(name)
    if not decisive.isdisjoint([*stored, *options]) and is_projects_state(where):
        stored, options = (
            {name: found[name] for name in found if name not in decisive}
            for found in (stored, options)
        )
    for name in names:
        for source, raw in _values_by_source(name, stored, options, where.environ):
            if raw not in (None, ""):
                yield name, source, raw


def _values_by_source(
    name: str,
    stored: Mapping[str, object],
    options: Mapping[str, object],
    environ: Mapping[str, str],
) -> Iterator[tuple[str, object]]:
    """The value of a setting in each source, the weakest first.

    No variable sets one that is ``stored_only``.
    """
    yield "file", stored.get(name)
    if name not in FORMER and KEYS[name].stored_only:
        yield "plugin", options.get(name)
        return
    yield "environment", environ.get(_variable_name(name))
    yield "plugin", environ.get(f"CLAUDE_PLUGIN_OPTION_{name.upper()}", options.get(name))


def _variable_name(name: str) -> str:
    """The environment variable of a setting."""
    return f"RESUME_HOOKS_{name.upper()}"


def is_damaged(path: str) -> bool:
    """Whether a settings file without values is damaged and not just empty: not a JSON object, too large, a folder."""
    try:
        raw = read_regular(path, MAX_OBJECT)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return b"".join(raw.split()) not in (b"", b"{}")
