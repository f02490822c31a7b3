"""Settings: values from our settings file, from environment variables and from the plugin's options.

Environment variables override the settings file, and the plugin's options override both. Every
trigger reads settings, so this module uses only the standard library. ``storage.stored_settings``
writes the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from resume_hooks import part_table
from resume_hooks.errors import UsageError
from resume_hooks.paths import (
    MAX_JSON_BYTES,
    Where,
    is_state_folder_in_project,
    read_json_object,
    read_regular_file,
    state_folder_problem,
)
from resume_hooks.seam import insert_part_names
from resume_hooks.shared_values import MODEL_TIMEOUT_SECONDS

Value = int | str | tuple[str, ...]
SETTINGS_FILE_NAME = "settings.json"
DEFAULT_VAULT_SIZE = "20G"
DEFAULT_HANDOFF_SIZE = "12k"  # The default size of a handoff.
# The version of the file's format. Files with a newer version are read but never written.
FILE_FORMAT_VERSION = 1

# Matches the name of a model, a Bedrock profile or a deployment, but not an option of the client.
_MODEL_NAME_EXPRESSION = r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}"
_HANDOFF_SIZE_EXPRESSION = r"(?:[1-9]|[1-3][0-9]|4[0-8])k"
_COMPACTION_EXPRESSION = (
    rf"client|(?:trim|{_HANDOFF_SIZE_EXPRESSION})(?:@(?:[6-9][0-9]|[1-9][0-9]{{2,3}})k)?"
)
# Matches the value "handoff" of the setting ``compaction`` in version 0.2.0. In that version, all
# handoffs had the same size.
_FORMER_COMPACTION_PATTERN = re.compile(r"\Ahandoff(?=@|\Z)")
_BYTE_SIZE_PATTERN = re.compile(r"([0-9]{1,15})([KMGT]?)I?B?")
_BYTE_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_PATH_EXPRESSION = r"[^\x00-\x1f\x7f]{0,1000}"


class SettingDefinition(NamedTuple):
    """A setting: its default, its description, and the function that parses a typed or stored value.

    ``is_path`` means that its values are paths of the user's files or folders. ``title`` is the
    setting's label among the plugin's options, which the client shows and stores. It is ``""`` if
    there is no such option. ``is_stored_only`` means that no environment variable can set the
    value. Even a trusted repository can set variables, and this setting decides where data is sent.
    """

    default: Value
    description: str
    parse: Callable[[object], Value]
    is_path: bool = False
    title: str = ""
    is_stored_only: bool = False


class Setting(NamedTuple):
    """The value of a setting, and where it comes from: default, file, environment or plugin."""

    value: Value
    source: str


def _make_number_parser(min_value: int, max_value: int) -> Callable[[object], Value]:
    def parse_number(raw: object) -> Value:
        # Other programs may write 80.0 into the JSON file.
        raw = int(raw) if isinstance(raw, float) and raw.is_integer() else raw
        if isinstance(raw, (int, str)) and not isinstance(raw, bool):
            text = str(raw)
        else:
            text = ""
        if not (text.isascii() and text.isdigit()) or not min_value <= int(text[:20]) <= max_value:
            raise ValueError(f"a whole number from {min_value} to {max_value}")
        return int(text)

    return parse_number


def _make_choice_parser(*choices: str) -> Callable[[object], Value]:
    def parse_choice(raw: object) -> Value:
        if raw not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return str(raw)

    return parse_choice


def parse_switch(raw: object) -> Value:
    """Parse ``on`` or ``off``. The client stores these values as true and false."""
    switch = "on" if raw in (True, "true") else "off" if raw in (False, "false") else raw
    return _make_choice_parser("on", "off")(switch)


def _parse_clipboard(raw: object) -> Value:
    """Parse the name of a clipboard method. ``off`` means the same as ``none``."""
    if raw == "off":
        return "none"
    return _make_choice_parser("auto", "pyperclip", "native", "tmux", "osc52", "none")(raw)


def _make_pattern_parser(pattern: str, requirement: str) -> Callable[[object], Value]:
    def parse_text(raw: object) -> Value:
        if not isinstance(raw, str) or not re.fullmatch(pattern, raw):
            raise ValueError(requirement)
        return raw

    return parse_text


def _parse_compaction(raw: object) -> Value:
    """Parse a method of compaction: client, trim, or the size of a handoff.

    ``handoff``, a value from version 0.2.0, is converted to the default size.
    """
    current_value = (
        _FORMER_COMPACTION_PATTERN.sub(DEFAULT_HANDOFF_SIZE, raw) if isinstance(raw, str) else raw
    )
    sizes = "a size such as 24k, up to 48k"
    return _make_pattern_parser(
        _COMPACTION_EXPRESSION,
        f"client, trim, or {sizes}; a threshold of 60k or more may follow trim or a size: 24k@150k",
    )(current_value)


def _make_path_parser(ending: str, requirement: str) -> Callable[[object], Value]:
    """Return a parser for paths that end with ``ending``. The empty string is valid and means no path."""
    return _make_pattern_parser(rf"(?:{_PATH_EXPRESSION}{re.escape(ending)})?", requirement)


def _parse_vault(raw: object) -> Value:
    """Parse a vault size: a size such as ``20G``, ``off``, or ``on`` (the default size).

    Sizes are converted to upper case.
    """
    # This is a tuple because a value from the file may be a list, which can't be looked up in a
    # set.
    if raw in ("on", "off"):
        if raw == "on":
            return DEFAULT_VAULT_SIZE
        return "off"
    if isinstance(raw, (int, str)) and not isinstance(raw, bool):
        text = str(raw).strip().upper()
    else:
        text = ""
    if not _BYTE_SIZE_PATTERN.fullmatch(text):
        raise ValueError("a size (such as 500M or 20G), on, or off")
    return text


def _parse_trigger_names(raw: object) -> Value:
    words = raw.replace(",", " ").split() if isinstance(raw, str) else raw
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise ValueError("words, separated by commas")
    return tuple(word.lower().lstrip(">/") for word in words)


PARSER_FACTORIES: dict[str, Callable[..., Callable[[object], Value]]] = {
    "number": _make_number_parser,
    "one of": _make_choice_parser,
    "path": _make_path_parser,
}
"""Maps the name of each kind of parser to the function that creates such a parser for a part's
setting."""

_CORE_SETTINGS: dict[str, SettingDefinition] = {
    "context_window": SettingDefinition(
        0,
        "Tokens in the model's context window; 0 = detect it from the session.",
        _make_number_parser(0, 10_000_000),
    ),
    "clipboard": SettingDefinition(
        "auto",
        "How to copy to the clipboard: auto, pyperclip, native, tmux, osc52 or none.",
        _parse_clipboard,
    ),
    "summary_model": SettingDefinition(
        "haiku",
        (
            "Model for summaries and for trim --smart. If it is set, /rollover uses it "
            "even if the cache is warm."
        ),
        _make_pattern_parser(_MODEL_NAME_EXPRESSION, "the name of a model, such as haiku"),
    ),
    "notice_percent": SettingDefinition(
        80,
        "Show a notice, once per session, when this percentage of the context is used; 0 = off.",
        _make_number_parser(0, 100),
        title="When to show that a session fills up",
    ),
    "compaction": SettingDefinition(
        "client",
        "What happens when a session is full. client: Claude Code writes its own summary. trim: the session is "
        "trimmed in place. A size such as 24k: the session keeps the content of such a handoff. trim@150k or "
        "24k@150k: this happens between turns, from that number of tokens on.",
        _parse_compaction,
        title="What happens to a full session",
    ),
    "handoff_size": SettingDefinition(
        DEFAULT_HANDOFF_SIZE,
        (
            "Maximum number of tokens in a handoff, 1k to 48k. A handoff contains the conversation and "
            "lists of files, commands and failures."
        ),
        _make_pattern_parser(_HANDOFF_SIZE_EXPRESSION, "a size such as 4k or 24k, up to 48k"),
        title="The size of a handoff",
    ),
    "handoff_sends": SettingDefinition(
        "off",
        (
            "Whether /handoff sends its next step when it opens the session; off = it "
            "waits in the box."
        ),
        parse_switch,
        title="Send a handoff's next step",
        is_stored_only=True,
    ),
    "handoff_tool": SettingDefinition(
        "off",
        "Whether the model may request a handoff; the client asks you each time.",
        parse_switch,
        title="Let the model request a handoff",
    ),
    "vault": SettingDefinition(
        DEFAULT_VAULT_SIZE,
        (
            "Maximum size of the vault, such as 500M or 40G. The vault archives ancestors, and sessions that "
            "the client is about to delete. When it is full, the oldest copies are removed. 0 = no limit, off "
            "= archive nothing."
        ),
        _parse_vault,
        title="Maximum size of archived copies",
    ),
    "team_model_search": SettingDefinition(
        "off",
        "Whether a model may search the team's sessions, which sends its query to the server.",
        parse_switch,
        title="Let a model search the team",
        is_stored_only=True,
    ),
    "triggers_off": SettingDefinition(
        (),
        (
            "Triggers to switch off, such as 'full, recall'. They then go to the model as ordinary prompts."
        ),
        _parse_trigger_names,
    ),
}


FORMER_SETTINGS = {
    "index_at_start": "every start now updates the search index in the background",
    "vault_max": "the setting vault replaces it. To set the size, run: resume-hooks config vault 40G",
    "vault_days": "archived copies stay until the vault is full",
    "threshold": "use the option --threshold in each trim",
    "keep_recent": "use the option --keep-recent in each trim",
    "ledger_file": (
        "with the setting handoff_dir, each handoff writes a document into the project, and the verb "
        "lineage shows the latest session"
    ),
    "summary_timeout": f"the limit is {MODEL_TIMEOUT_SECONDS} seconds; rollover and trim --smart accept --timeout",
}
"""Settings from earlier versions, and what to use instead."""


_PART_SETTINGS = {
    name: SettingDefinition(
        default,
        about,
        PARSER_FACTORIES[form](*given),
        is_path=form == "path",
        is_stored_only=form == "path",
    )
    for name, (_, default, about, form, given, _) in part_table.SETTINGS.items()
}
SETTING_DEFINITIONS = {
    name: _CORE_SETTINGS.get(name) or _PART_SETTINGS[name]
    for name in insert_part_names(_CORE_SETTINGS, part_table.SETTINGS)
}


def load_settings(where: Where | None = None) -> dict[str, Setting]:
    """Return the value and the source of every setting.

    An invalid value is skipped, and the value from the next weaker source is used.
    """
    settings = {}
    for name, key in SETTING_DEFINITIONS.items():
        settings[name] = Setting(key.default, "default")
    for name, source, raw in _raw_values_with_names_and_sources(
        SETTING_DEFINITIONS, where or Where()
    ):
        try:
            settings[name] = Setting(SETTING_DEFINITIONS[name].parse(raw), source)
        except ValueError:
            continue  # ``doctor`` reports invalid values. Here they are skipped.
    return settings


def format_value(value: Value) -> str:
    """Return a setting's value as text for people."""
    return (", ".join(value) if isinstance(value, tuple) else str(value)) or "(empty)"


def read_number_setting(name: str, where: Where | None = None) -> int:
    """Return the value of a setting that is a number."""
    value = load_settings(where)[name].value
    if not isinstance(value, int):
        raise TypeError(f"{name} is not a number")
    return value


def is_switched_on(name: str, where: Where | None = None) -> bool:
    """Check whether a setting is ``on``."""
    return load_settings(where)[name].value == "on"


def vault_limit(where: Where | None = None) -> int | None:
    """Return the maximum size of the vault in bytes: 0 for no limit, or None if the vault is off."""
    text = _BYTE_SIZE_PATTERN.fullmatch(str(load_settings(where)["vault"].value))
    if text:
        return int(text[1]) * _BYTE_UNITS[text[2]]
    return None


def remove_setting_variables(where: Where) -> Where:
    """Return the same folders with an environment from which our settings were removed.

    Any repository, even a trusted one, can set environment variables. Such variables must not
    decide where data is sent.
    """
    remaining_variables = {}
    for name, value in where.environ.items():
        if (
            not name.startswith("CLAUDE_PLUGIN_OPTION_")
            and name.removeprefix("RESUME_HOOKS_").lower() not in SETTING_DEFINITIONS
        ):
            remaining_variables[name] = value
    return Where(remaining_variables)


def describe_invalid_settings(where: Where | None = None) -> list[str]:
    """Return a sentence for each setting whose value is invalid or has no effect."""
    where = where or Where()
    path = settings_file(where)
    if not read_json_object(path) and is_damaged(path):
        sentences = [f"{path} is not a readable settings file"]
    else:
        sentences = []
    for name, source, raw in _raw_values_with_names_and_sources(SETTING_DEFINITIONS, where):
        try:
            SETTING_DEFINITIONS[name].parse(raw)
        except ValueError as error:
            sentences.append(f"{name} ({source}) must be {error}, not {raw!r}")
    if is_state_folder_in_project(where):
        sentences.append(
            f"{where.state} is in a project, so its team settings and document settings are ignored"
        )
    environ = where.environ
    state_variable = environ.get("RESUME_HOOKS_HOME", "")
    if state_variable and (problem := state_folder_problem(state_variable, environ)):
        sentences.append(f"RESUME_HOOKS_HOME has no effect: {problem}")
    for name, key in SETTING_DEFINITIONS.items():
        if key.is_stored_only and environ.get(_variable_name(name)):
            sentences.append(
                f"The variable {_variable_name(name)} can't set {name}: use resume-hooks "
                f"config {name}"
            )
    return sentences


def describe_former_settings(where: Where | None = None) -> list[str]:
    """Return a sentence for each setting from an earlier version that still has a value."""
    return [
        f"{name} ({source}) is ignored: {FORMER_SETTINGS[name]}."
        for name, source, _ in _raw_values_with_names_and_sources(FORMER_SETTINGS, where or Where())
    ]


def parse_setting(name: str, text: str) -> Value:
    """Convert the text that the user typed for a setting to the setting's value.

    Raise UsageError for an unknown setting or an invalid value.
    """
    key = SETTING_DEFINITIONS.get(name)
    if key is None:
        raise UsageError(
            f"There is no setting '{name}'", f"Settings: {', '.join(SETTING_DEFINITIONS)}."
        )
    try:
        return key.parse(text)
    except ValueError as error:
        raise UsageError(f"{name} must be {error}, not '{text}'") from error


def settings_file(where: Where | None = None) -> str:
    """Return the path of our settings file."""
    return os.path.join((where or Where()).state, SETTINGS_FILE_NAME)


def _plugin_options(where: Where) -> dict[str, object]:
    """Return the options of this plugin that the client has stored.

    Options of a disabled plugin are left out. Hooks also get the options as environment variables,
    but other processes get them only from here.
    """
    document = read_json_object(os.path.join(where.config, "settings.json"))
    plugins, read_enabled_plugins = document.get("pluginConfigs"), document.get("enabledPlugins")
    if isinstance(read_enabled_plugins, dict):
        disabled_plugins = set()
        for name, is_enabled in read_enabled_plugins.items():
            if is_enabled is False:
                disabled_plugins.add(name)
    else:
        disabled_plugins = set()
    enabled_options: dict[str, object] = {}
    for name, stored in plugins.items() if isinstance(plugins, dict) else ():
        if isinstance(stored, dict):
            options = stored.get("options")
        else:
            options = None
        if (
            name.startswith("resume-hooks@")
            and name not in disabled_plugins
            and isinstance(options, dict)
        ):
            enabled_options |= options
    return enabled_options


def _raw_values_with_names_and_sources(
    names: Iterable[str], where: Where
) -> Iterator[tuple[str, str, object]]:
    """Yield each value of the settings as (name, source, value), weakest source first.

    Values are not parsed yet. Empty values are left out.
    """
    stored, options = read_json_object(settings_file(where)), _plugin_options(where)
    stored_only_names = set()
    for name, key in SETTING_DEFINITIONS.items():
        if key.is_stored_only:
            stored_only_names.add(name)
    if not stored_only_names.isdisjoint([*stored, *options]) and is_state_folder_in_project(where):
        stored, options = (
            {name: source_values[name] for name in source_values if name not in stored_only_names}
            for source_values in (stored, options)
        )
    for name in names:
        for source, raw in _raw_values_by_source(name, stored, options, where.environ):
            if raw not in (None, ""):
                yield name, source, raw


def _raw_values_by_source(
    name: str,
    stored_values: Mapping[str, object],
    plugin_options: Mapping[str, object],
    environ: Mapping[str, str],
) -> Iterator[tuple[str, object]]:
    """Yield each source of a setting with its value, weakest source first.

    A setting with ``is_stored_only`` is not read from the environment.
    """
    yield "file", stored_values.get(name)
    if name not in FORMER_SETTINGS and SETTING_DEFINITIONS[name].is_stored_only:
        yield "plugin", plugin_options.get(name)
        return
    yield "environment", environ.get(_variable_name(name))
    yield "plugin", environ.get(f"CLAUDE_PLUGIN_OPTION_{name.upper()}", plugin_options.get(name))


def _variable_name(name: str) -> str:
    """Return the name of the environment variable that sets a setting."""
    return f"RESUME_HOOKS_{name.upper()}"


def is_damaged(path: str) -> bool:
    """Check whether a settings file is damaged: it contains no JSON object, is too large, or is a folder.

    An empty file is not damaged.
    """
    try:
        raw = read_regular_file(path, MAX_JSON_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return b"".join(raw.split()) not in (b"", b"{}")
