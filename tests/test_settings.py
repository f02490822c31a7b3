"""Tests of settings, which come from a file, environment variables and the plugin's options."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from resume_hooks import part_table, settings
from resume_hooks.errors import UsageError, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.settings import Setting, load_settings, settings_file
from resume_hooks.storage.stored_settings import store_setting
from tests.builders import ConfigHome
from tests.needs import keep_names_of_installed_parts


def write_settings(home: ConfigHome, content: object) -> None:
    """Write a settings file. Bytes are written unchanged, and other values as JSON."""
    path = settings_file(home.where)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(content if isinstance(content, bytes) else json.dumps(content).encode())


def test_every_setting_has_a_default(config_home: ConfigHome) -> None:
    """Without a settings file and environment variables, every setting has its default."""
    assert load_settings(config_home.where) == keep_names_of_installed_parts(
        {
            "context_window": Setting(0, "default"),
            "clipboard": Setting("auto", "default"),
            "notice_percent": Setting(80, "default"),
            "compaction": Setting("client", "default"),
            "summary_model": Setting("haiku", "default"),
            "handoff_sends": Setting("off", "default"),
            "handoff_tool": Setting("off", "default"),
            "handoff_size": Setting("12k", "default"),
            "handoff_dir": Setting("", "default"),
            "vault": Setting("20G", "default"),
            "team_model_search": Setting("off", "default"),
            "triggers_off": Setting((), "default"),
        },
        part_table.SETTINGS,
    )


def test_later_sources_have_precedence(config_home: ConfigHome) -> None:
    """Environment variables override the settings file, and the plugin's options override both."""
    write_settings(
        config_home, {"context_window": 1000, "clipboard": "tmux", "triggers_off": ["help"]}
    )
    environ = {
        **config_home.environ,
        "RESUME_HOOKS_CONTEXT_WINDOW": "2000",
        "RESUME_HOOKS_CLIPBOARD": "off",
        "CLAUDE_PLUGIN_OPTION_CONTEXT_WINDOW": "3000",
    }
    found = load_settings(Where(environ))
    assert found["context_window"] == Setting(3000, "plugin")
    assert found["clipboard"] == Setting("none", "environment")
    assert found["triggers_off"] == Setting(("help",), "file")


@pytest.mark.parametrize(
    "invalid_content",
    [
        {"context_window": -1},
        {"context_window": True},
        {"context_window": 1.5},
        {"context_window": "many"},
        {"context_window": "9" * 5000},
        {"context_window": None},
        {"clipboard": ["auto"]},
        {"summary_model": "--help"},
        {"summary_model": "haiku --dangerously-skip-permissions"},
        {"summary_model": 5},
        {"compaction": "trim@59k"},
        {"compaction": "client@150k"},
        {"compaction": "trim@150000"},
        {"compaction": "trim@150k\n"},
        {"compaction": 150},
        {"vault": "-1"},
        {"vault": True},
        {"vault": {"on": 1}},
        {"handoff_dir": 5},
        {"handoff_dir": "a\nb"},
        {"handoff_dir": "x" * 1001},
        {"handoff_size": "0k"},
        {"handoff_size": "49k"},
        {"handoff_size": "all"},
        {"compaction": "49k"},
        {"clipboard": "AUTO"},
        {"triggers_off": {"help": 1}},
        {"triggers_off": [1]},
        {"triggers_off": ""},
        {"unknown": 1},
        [],
        b"",
        b"\xff\xfe",
        b'{"clipboard": "no',
        b"[" * 100_000,
    ],
)
def test_an_invalid_setting_falls_back_to_its_default(
    config_home: ConfigHome, invalid_content: Any
) -> None:
    """If a value is invalid or the settings file is damaged, every setting has its default value."""
    write_settings(config_home, invalid_content)
    assert load_settings(config_home.where) == {
        name: Setting(key.default, "default") for name, key in settings.SETTING_DEFINITIONS.items()
    }


def test_options_stored_by_the_client_are_read(config_home: ConfigHome) -> None:
    """The plugin's options are read from variables or from the client's settings file.

    If the client's settings are damaged, they are ignored.
    """
    path = os.path.join(config_home.where.config, "settings.json")
    options = {"vault": "off", "handoff_sends": True, "handoff_tool": False, "notice_percent": 30}
    others = {
        "other@somewhere": {"options": {"compaction": "trim"}},
        "resume-hooks@mine": {"options": 5},
    }

    def write_plugin_configs(plugins: object) -> None:
        with open(path, "w", encoding="utf-8") as stream:
            json.dump({"pluginConfigs": plugins}, stream)

    write_plugin_configs({**others, "resume-hooks@resume-hooks": {"options": options}})
    found = load_settings(config_home.where)
    values = {name: row.value for name, row in found.items() if row.source == "plugin"}
    assert values == {
        "vault": "off",
        "handoff_sends": "on",
        "handoff_tool": "off",
        "notice_percent": 30,
    }
    with open(path, "w", encoding="utf-8") as stream:
        plugins = {
            "resume-hooks@new": {"options": {"notice_percent": 40.0}},
            "resume-hooks@old": {"options": options},
        }
        json.dump({"pluginConfigs": plugins, "enabledPlugins": {"resume-hooks@old": False}}, stream)
    found = load_settings(config_home.where)
    assert (found["notice_percent"], found["vault"].source) == ((40, "plugin"), "default")
    told = Where(
        {
            **config_home.environ,
            "CLAUDE_PLUGIN_OPTION_VAULT": "7G",
            "CLAUDE_PLUGIN_OPTION_HANDOFF_TOOL": "true",
        }
    )
    assert (load_settings(told)["vault"].value, load_settings(told)["handoff_tool"].value) == (
        "7G",
        "on",
    )
    damaged: list[object] = [None, [], others, {"resume-hooks@x": {"options": {"vault": {}}}}]
    for each in damaged:
        write_plugin_configs(each)
        assert load_settings(config_home.where)["vault"].source == "default"


@pytest.mark.parametrize("variable", ["RESUME_HOOKS_COMPACTION", "CLAUDE_PLUGIN_OPTION_COMPACTION"])
def test_an_overridden_setting_is_not_stored(config_home: ConfigHome, variable: str) -> None:
    """``store_setting`` refuses a setting that a variable or one of the plugin's options overrides."""
    where = Where({**config_home.environ, variable: "trim"})
    with pytest.raises(UsageError, match="compaction stays trim") as caught:
        store_setting("compaction", "handoff", where)
    assert "configure" in caught.value.remedy or variable in caught.value.remedy
    assert not os.path.exists(settings_file(where))


@pytest.mark.parametrize(
    ("old_value", "new_value"),
    [("handoff", "12k"), ("handoff@150k", "12k@150k"), ("24k@90k", "24k@90k"), ("trim", "trim")],
)
def test_a_compaction_setting_of_0_2_0_is_converted(
    config_home: ConfigHome, old_value: str, new_value: str
) -> None:
    """The value ``handoff`` of the setting ``compaction`` in version 0.2.0 becomes the default size."""
    assert store_setting("compaction", old_value, config_home.where) == new_value
    write_settings(config_home, {"compaction": old_value})
    assert load_settings(config_home.where)["compaction"] == Setting(new_value, "file")


@pytest.mark.parametrize("value", ["49k", "0k", "handoffs", "handoff@59k", "trim handoff", "all"])
def test_an_invalid_compaction_is_refused(config_home: ConfigHome, value: str) -> None:
    """``store_setting`` refuses an invalid value of ``compaction``, and the error lists the sizes."""
    with pytest.raises(UsageError, match="client, trim, or a size such as 24k, up to 48k"):
        store_setting("compaction", value, config_home.where)


@pytest.mark.parametrize(
    "text", ["help, Session", ">help >session", "help session", "help,session,"]
)
def test_a_list_of_triggers_may_have_any_separator(config_home: ConfigHome, text: str) -> None:
    """The triggers in ``triggers_off`` can be separated by commas or spaces.

    They can be written in any case and with or without ``>``.
    """
    found = load_settings(Where({**config_home.environ, "RESUME_HOOKS_TRIGGERS_OFF": text}))
    assert found["triggers_off"].value == ("help", "session")


def test_storing_keeps_unknown_settings(config_home: ConfigHome) -> None:
    """``store_setting`` changes only one key in the file, and keeps unknown keys.

    The file is private, and no temporary file is left.
    """
    write_settings(config_home, {"later": {"x": 1}, "clipboard": "tmux"})
    assert store_setting("context_window", "500000", config_home.where) == 500_000
    path = settings_file(config_home.where)
    with open(path, encoding="utf-8") as stream:
        assert json.load(stream) == {
            "later": {"x": 1},
            "clipboard": "tmux",
            "context_window": 500_000,
            "version": 1,
        }
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(os.path.dirname(path)) == ["settings.json"]


@pytest.mark.parametrize(
    ("key", "value"), [("clipbord", "auto"), ("clipboard", "xclip"), ("context_window", "-5")]
)
def test_storing_refuses_an_unknown_setting(config_home: ConfigHome, key: str, value: str) -> None:
    """If the key is unknown or the value is invalid, ``store_setting`` raises an error and writes nothing."""
    with pytest.raises(UsageError):
        store_setting(key, value, config_home.where)
    assert not os.path.exists(settings_file(config_home.where))


@pytest.mark.parametrize(
    "content",
    [b'{"clipboard": "tmux"', {"version": 2, "clipboard": {"mac": "x"}}, {"version": "x"}],
)
def test_storing_never_replaces_a_damaged_file(config_home: ConfigHome, content: Any) -> None:
    """``store_setting`` does not replace a settings file that is damaged or from a newer version."""
    write_settings(config_home, content)
    path = settings_file(config_home.where)
    with open(path, "rb") as stream:
        before = stream.read()
    with pytest.raises(WriteFailed):
        store_setting("clipboard", "none", config_home.where)
    with open(path, "rb") as stream:
        assert stream.read() == before


def test_an_error_of_store_setting_names_the_file(config_home: ConfigHome) -> None:
    """If the settings file cannot be written, the error names the file.

    It also mentions disk space and permissions.
    """
    (config_home.root / "file").write_text("")
    environ = {"RESUME_HOOKS_HOME": str(config_home.root / "file" / "state")}
    with pytest.raises(WriteFailed, match=r"settings\.json") as failure:
        store_setting("clipboard", "none", Where(environ))
    assert "Check free space and the permissions" in failure.value.remedy


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "too large", "no object"])
def test_a_settings_file_that_is_not_a_regular_file_is_ignored(
    config_home: ConfigHome, kind: str
) -> None:
    """The settings file is ignored if it is a pipe, a device or a folder, too large, or not a JSON object.

    It is reported as unreadable and is never overwritten.
    """
    path = settings_file(config_home.where)
    os.makedirs(os.path.dirname(path))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        os.symlink("/dev/zero", path)
    elif kind == "folder":
        os.mkdir(path)
    else:
        write_settings(
            config_home,
            b'{"clipboard":"none"}' + b" " * 2_000_000 if kind == "too large" else b"[]",
        )
    before = os.lstat(path)
    assert load_settings(config_home.where)["clipboard"] == Setting("auto", "default")
    assert settings.describe_invalid_settings(config_home.where) == [
        f"{path} is not a readable settings file"
    ]
    with pytest.raises(WriteFailed, match="left alone"):
        store_setting("clipboard", "none", config_home.where)
    assert os.path.samestat(os.lstat(path), before)


@pytest.mark.parametrize("content", [b"", b" \n", b"{}\n", b"{ }"])
def test_an_empty_settings_file_is_valid(config_home: ConfigHome, content: bytes) -> None:
    """An empty settings file is valid, and so is one with an empty object."""
    write_settings(config_home, content)
    assert settings.describe_invalid_settings(config_home.where) == []
    assert store_setting("clipboard", "none", config_home.where) == "none"
