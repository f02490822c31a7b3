"""Tests of the launcher: how it chooses a Python, what it refuses for the model, and its errors."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.cli.verb_table import FORMER_VERBS
from tests.e2e.harness.processes import wait_until
from tests.hook_scripts.plugin_copy import PluginCopy
from tests.needs import REPO, installed_pythons

PYTHON_PATHS = installed_pythons() or [Path(sys.base_prefix, "bin", "python3")]
"""All installed versions of Python since 3.6, or only the one that runs the tests."""
PROMPT_EVENT = b'{"prompt":">resume"}'


def write_fake_python(path: Path, output: str, exit_status: int = 0) -> None:
    """Write an executable that prints ``output`` and its arguments, in place of Python."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "{output} $*"\nexit {exit_status}\n')
    path.chmod(0o755)


def test_the_launcher_looks_for_python_in_a_fixed_order(plugin: PluginCopy, tmp_path: Path) -> None:
    """The launcher uses the first Python that it finds.

    It looks in RESUME_HOOKS_PYTHON, the data folder, the repository, and PATH, in this order.
    """
    places = {
        "named": tmp_path / "named" / "python",
        "data": plugin.data_folder / "venv" / "bin" / "python",
        "windows": plugin.data_folder / "venv" / "Scripts" / "python.exe",
        "checkout": plugin.root / ".venv" / "bin" / "python",
        "path": tmp_path / "bin" / "resume-hooks",
    }
    for name, place in places.items():
        write_fake_python(place, name)
    for name, place in places.items():
        done = plugin.run_engine("lineage", "a b", RESUME_HOOKS_PYTHON=str(places["named"]))
        assert done.stdout.startswith(name)
        assert done.stdout.endswith("lineage a b\n")
        place.unlink()


def test_a_python_may_be_named_without_its_folder(plugin: PluginCopy, tmp_path: Path) -> None:
    """RESUME_HOOKS_PYTHON may be the name of a program on PATH."""
    write_fake_python(tmp_path / "bin" / "my-python", "mine")
    assert plugin.run_engine("info", RESUME_HOOKS_PYTHON="my-python").stdout.startswith("mine -I")


def test_a_launcher_on_path_is_tried_once(plugin: PluginCopy, tmp_path: Path) -> None:
    """If ``resume-hooks`` on PATH only calls the launcher again, the launcher tries it once and fails."""
    wrapper = tmp_path / "bin" / "resume-hooks"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(str(plugin.root))}/hooks/engine "$@"\n')
    wrapper.chmod(0o755)
    done = plugin.run_engine("info", RESUME_HOOKS_PYTHON="")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("has_lock_file", [True, False])
def test_the_data_folder_is_found_without_the_variable(
    plugin: PluginCopy, has_lock_file: bool
) -> None:
    """The launcher finds the data folder even without CLAUDE_PLUGIN_DATA, as in the model's Bash tool.

    It searches for a folder that the installer has written. If there are several, it takes the one
    with the current lock file.
    """
    older = plugin.data_folder.parent / "resume-hooks-a-market"
    for data in (plugin.data_folder, older):
        write_fake_python(data / "venv" / "bin" / "python", data.name)
        (data / "install.json").write_text("{}")
    if has_lock_file:
        shutil.copy(plugin.root / "requirements.lock", plugin.data_folder / "venv")
    else:
        shutil.rmtree(older)
    write_fake_python(
        plugin.data_folder.parent / "resume-hooks-zzz" / "venv" / "bin" / "python", "not ours"
    )
    assert plugin.run_engine(
        "info", RESUME_HOOKS_PYTHON="", CLAUDE_PLUGIN_DATA=""
    ).stdout.startswith(plugin.data_folder.name)


def test_the_command_line_runs_the_plugins_own_code(plugin: PluginCopy, tmp_path: Path) -> None:
    """The launcher runs the plugin's own package with unchanged arguments.

    It imports no module from the working folder or from PYTHONPATH.
    """
    (tmp_path / "resume_hooks.py").write_text("raise SystemExit('hijacked')")
    done = plugin.run_engine("find-original", "--json", "a  b*", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "engine find-original --json a  b*\n",
        "",
    )


@pytest.mark.parametrize("verb", ["search", "lineage", "read", "doctor", "--help", "--version"])
def test_the_model_may_run_reading_verbs(plugin: PluginCopy, verb: str) -> None:
    """Verbs that only read run in the model's shell."""
    assert plugin.run_engine(verb, CLAUDECODE="1").stdout == f"engine {verb}\n"


@pytest.mark.parametrize(
    "verb",
    ["handoff", "trim", "delete", "config", "install", "--install", "--json", "slash", "new"],
)
def test_the_model_may_not_run_writing_verbs(plugin: PluginCopy, verb: str) -> None:
    """In the model's shell, verbs that write and unknown verbs are refused with exit code 1.

    The launcher also refuses them in Codex. If Claude Code has a command for the verb, the message
    names this command.
    """
    shutil.copytree(REPO / "commands", plugin.root / "commands")
    for shell in ({"CLAUDECODE": "1"}, {"CODEX_THREAD_ID": "01a20583"}):
        done = plugin.run_engine(verb, "x", **shell)
        assert (done.returncode, done.stdout) == (1, "")
        typed = f"type /resume-hooks:{verb} in Claude Code, or "
        new_name = f"{typed if verb in {'handoff', 'trim'} else ''}run it in a terminal."
        assert done.stderr == f"resume-hooks: '{verb}' is for the user to run: {new_name}\n"


@pytest.mark.parametrize(("verb", "new_name"), FORMER_VERBS.items())
def test_the_model_learns_the_new_name_of_a_verb(
    plugin: PluginCopy, verb: str, new_name: str
) -> None:
    """In the model's shell, a former verb does not run but prints the name of the new verb.

    The launcher prints the same text as the engine.
    """
    done = plugin.run_engine(verb, "x", CLAUDECODE="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"resume-hooks: `{verb}` is `{new_name}` now\n"


@pytest.mark.parametrize(
    "output", ["-o", "-oreport.json", "--output", "--output=report.json", "--index"]
)
def test_the_model_cannot_write_a_file_with_doctor(plugin: PluginCopy, output: str) -> None:
    """In the model's shell, ``doctor`` refuses options that would write a file or change the index."""
    done = plugin.run_engine("doctor", "--bundle", output, "report.json", CLAUDECODE="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is for the user to run" in done.stderr
    assert (
        plugin.run_engine("doctor", "--bundle", CLAUDECODE="1").stdout == "engine doctor --bundle\n"
    )


def test_a_slash_command_may_run_a_writing_verb(plugin: PluginCopy) -> None:
    """In the model's shell, ``--slash`` runs a slash command that writes.

    The text that the user typed after the command comes from stdin.
    """
    done = plugin.run_engine("--slash", "handoff", stdin="fix $(this) 'now'", CLAUDECODE="1")
    assert done.stdout == "engine slash handoff\nfix $(this) 'now'\n"


def test_the_user_may_run_every_verb(plugin: PluginCopy) -> None:
    """The user may run every verb outside the client, and also inside the client on a terminal."""
    assert plugin.run_engine("handoff").stdout == "engine handoff\n"
    ours, theirs = pty.openpty()
    subprocess.run(
        [plugin.root / "hooks" / "engine", "handoff"],
        env=plugin.env | {"CLAUDECODE": "1"},
        cwd=plugin.project_folder,
        stdout=theirs,
        check=True,
    )
    assert os.read(ours, 100) == b"engine handoff\r\n"
    os.close(ours)
    os.close(theirs)


def path_with_only_tools(folder: Path, *tools: str) -> str:
    """Create a folder that contains only links to these programs, and return it as a PATH."""
    folder.mkdir()
    for tool in tools:
        (folder / Path(tool).name).symlink_to(shutil.which(tool) or tool)
    return str(folder)


def test_missing_programs_are_named_in_one_line(plugin: PluginCopy, tmp_path: Path) -> None:
    """If there is no engine, a verb prints one line with the command that installs it.

    If Python and uv are missing too, the line first says to install one of these.
    """
    bare = path_with_only_tools(tmp_path / "bare", "sh", "cmp")
    done = plugin.run_engine("info", RESUME_HOOKS_PYTHON="", PATH=bare)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    install = f"run: sh '{plugin.root}/hooks/engine' --install\n"
    assert done.stderr == f"resume-hooks: install Python 3.11 or newer, or uv; then {install}"
    (tmp_path / "bare" / "python3.11").symlink_to(sys.executable)
    done = plugin.run_engine("info", RESUME_HOOKS_PYTHON="", PATH=bare)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "not installed yet" in done.stderr
    assert done.stderr.endswith(install)


def test_a_failed_installation_is_reported(plugin: PluginCopy) -> None:
    """If an installation has failed, a verb prints the reason, the command that repeats it, and the log."""
    plugin.data_folder.mkdir(parents=True, exist_ok=True)
    error = "No space left on device: 'x'"
    note = {"state": "failed", "started": 1, "error": error, "tool": ""}
    (plugin.data_folder / "install.json").write_text(json.dumps(note) + "\n")
    done = plugin.run_engine("doctor", RESUME_HOOKS_PYTHON="")
    assert (done.returncode, done.stdout) == (1, "")
    reason, remedy = done.stderr.splitlines()
    assert reason == f"resume-hooks: the engine is not installed: the last attempt failed: {error}"
    install = f"sh '{plugin.root}/hooks/engine' --install"
    assert remedy == f"  Fix the cause, then run: {install} (log: {plugin.data_folder}/install.log)"
    (plugin.data_folder / "install.json").write_text(json.dumps({**note, "state": "ready"}) + "\n")
    assert "not installed yet" in plugin.run_engine("doctor", RESUME_HOOKS_PYTHON="").stderr


@pytest.fixture
def fake_installation(plugin: PluginCopy) -> Path:
    """Replace the installer with a fake one, and return the file in which the fake records its target."""
    told = plugin.data_folder / "asked"
    (plugin.root / "hooks" / "install.py").write_text(
        f"import sys\nopen({str(told)!r}, 'w').write(sys.argv[-1])\n"
    )
    return told


def test_the_first_trigger_starts_the_installation(
    plugin: PluginCopy, fake_installation: Path
) -> None:
    """If there is no engine, a trigger starts the installation in the background.

    The trigger prints no message about the installation. The next trigger can use the engine.
    """
    done = plugin.run_hook("UserPromptSubmit", PROMPT_EVENT, RESUME_HOOKS_PYTHON="")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"reply of fallback\n", b"")
    assert wait_until(
        lambda: (
            fake_installation.exists() and fake_installation.read_text() == str(plugin.data_folder)
        )
    )


@pytest.mark.parametrize("signal", ["INT", "TERM", "KILL"])
def test_a_killed_engine_is_not_reinstalled(
    plugin: PluginCopy, fake_installation: Path, signal: str
) -> None:
    """If the hook's engine was killed, no installation starts, and the fallback does not answer.

    In this case, the client or the user has stopped the hook.
    """
    write_fake_python(plugin.root / ".venv" / "bin" / "python", "")
    (plugin.root / ".venv" / "bin" / "python").write_text(
        f"#!/bin/sh\n[ $# = 3 ] || kill -{signal} $$\n"
    )
    done = plugin.run_hook("UserPromptSubmit", PROMPT_EVENT, RESUME_HOOKS_PYTHON="")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert plugin.engine_calls == b""
    assert not wait_until(fake_installation.exists, 1)


@pytest.mark.parametrize(("exit_status", "is_reinstalled"), [(0, False), (1, True)])
def test_the_engine_is_reinstalled_only_if_its_python_does_not_start(
    plugin: PluginCopy, fake_installation: Path, exit_status: int, is_reinstalled: bool
) -> None:
    """The engine is installed again only if the Python in the repository does not start.

    If this Python starts and the plugin's code fails, new packages would not help.
    """
    python = plugin.root / ".venv" / "bin" / "python"
    write_fake_python(python, "")
    python.write_text(f"#!/bin/sh\n[ $# = 2 ] && exit 1\nexit {exit_status}\n")
    assert (
        plugin.run_hook("UserPromptSubmit", PROMPT_EVENT, RESUME_HOOKS_PYTHON="").stdout
        == b"reply of fallback\n"
    )
    assert wait_until(fake_installation.exists, 10 if is_reinstalled else 1) == is_reinstalled


@pytest.mark.usefixtures("fake_installation")
@pytest.mark.parametrize("python", PYTHON_PATHS, ids=lambda path: path.parent.parent.name)
def test_the_fallback_runs_on_any_python_from_3_9(
    plugin: PluginCopy, tmp_path: Path, python: Path
) -> None:
    """The fallback runs with any python3 on PATH that is version 3.9 or later, and skips older ones."""
    path = path_with_only_tools(tmp_path / "bare", "sh", "cat", "cmp", str(python))
    done = plugin.run_hook("UserPromptSubmit", PROMPT_EVENT, RESUME_HOOKS_PYTHON="", PATH=path)
    said = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, check=True
    )
    version = tuple(int(part) for part in said.stdout.split())
    answered = b"reply of fallback\n" if version >= (3, 9) else b""
    assert (done.returncode, done.stdout, done.stderr) == (0, answered, b"")
    assert plugin.engine_calls.startswith(b"fallback %d.%d\n" % version) == bool(answered)


@pytest.mark.usefixtures("fake_installation")
def test_the_fallback_replaces_an_engine_without_a_dependency(plugin: PluginCopy) -> None:
    """If the engine cannot be imported, the fallback answers.

    If the fallback fails too, the prompt passes. The engine cannot be imported if its venv is from
    before an update and lacks a package.
    """
    hooks = plugin.root / "src/resume_hooks/hooks"
    (hooks / "prompt.py").write_text("import no_such_package\n")
    assert plugin.run_hook("UserPromptSubmit", PROMPT_EVENT).stdout == b"reply of fallback\n"
    for name in ("prompt", "fallback"):
        (hooks / f"{name}.py").write_text("def main(:\n")
    done = plugin.run_hook("UserPromptSubmit", PROMPT_EVENT)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_unknown_hook_is_silent(plugin: PluginCopy) -> None:
    """The launcher prints nothing if it does not know the hook.

    A hooks.json from a newer version may name such a hook.
    """
    done = plugin.run_engine("--hook", "../../x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def plugin_without_python(plugin: PluginCopy, tmp_path: Path) -> PluginCopy:
    """Return the plugin on a machine that has no uv and whose Python is too old."""
    plugin.env.update(
        {
            "PATH": path_with_only_tools(tmp_path / "tools", "sh", "sed", "cat"),
            "RESUME_HOOKS_PYTHON": "",
        }
    )
    write_fake_python(tmp_path / "tools" / "python3", "too old", exit_status=1)
    return plugin


@pytest.mark.parametrize(
    ("prompt", "trigger_name"),
    [
        (">handoff", ">handoff"),
        ('>handoff fix "this" \\ and\nthat', ">handoff"),
        (">resume", ">resume"),
        ("/resume-hooks:resume", "/resume-hooks:resume"),
        ("/resume-hooks:trim 80%", "/resume-hooks:trim"),
        (">resume the work", ""),
        (">handoffs", ""),
        ("/resume-hooks:recover-context the words", ""),
        ("fix it", ""),
    ],
)
def test_a_trigger_without_python_is_blocked(
    plugin_without_python: PluginCopy, prompt: str, trigger_name: str
) -> None:
    """If there is no usable Python, a trigger is blocked, and the message repeats the text after it.

    Other prompts pass. Triggers do not pass, because the model would use tokens to answer them.
    """
    done = plugin_without_python.run_hook(
        "UserPromptSubmit", json.dumps({"session_id": "x", "prompt": prompt}).encode()
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if not trigger_name:
        assert done.stdout == b""
        return
    answer = json.loads(done.stdout)
    assert answer["decision"] == "block"
    assert answer["reason"].startswith(
        f"resume-hooks: {trigger_name} needs Python 3.11 or newer, or uv."
    )
    text = prompt.partition(" ")[2]
    assert answer["reason"].endswith(f"not sent: {text}" if text else "again.")


def remove_plugin_from_list(plugin: PluginCopy) -> dict[str, str]:
    """Remove the plugin from the client's list of plugins.

    Return the environment of a client that was started before and is still running.
    """
    plugins = plugin.data_folder.parent.parent
    (plugins / "installed_plugins.json").write_text('{"version": 2, "plugins": {"x@y": []}}')
    return {
        "CLAUDE_PLUGIN_DATA": str(plugins / "data" / "resume-hooks-resume-hooks"),
        "RESUME_HOOKS_PYTHON": "",
    }


def test_only_a_client_start_reinstalls_a_removed_engine(
    plugin: PluginCopy, fake_installation: Path
) -> None:
    """If the plugin was removed, triggers report this, and no prompt or resume installs the engine.

    If a client that still has the plugin starts later, the engine is installed again.
    """
    env = remove_plugin_from_list(plugin)
    done = plugin.run_hook(
        "UserPromptSubmit", b'{"session_id": "x", "prompt": ">handoff now"}', **env
    )
    assert json.loads(done.stdout)["reason"].startswith(
        "resume-hooks: >handoff is gone: the plugin was removed."
    )
    told = plugin.run_engine(
        "--module", stdin='{"command":"lineage","args":"","session_id":"x"}', **env
    )
    assert json.loads(told.stdout)["text"].startswith("/lineage is gone: the plugin was removed.")
    plugin.run_hook("SessionStart", b'{"session_id": "x", "source": "resume"}', **env)
    assert not wait_until(fake_installation.exists, 1)
    assert not Path(env["CLAUDE_PLUGIN_DATA"]).exists()
    plugin.run_hook("SessionStart", b'{"session_id": "x", "source": "startup"}', **env)
    assert wait_until(fake_installation.exists)


def test_a_command_without_python_returns_the_typed_text(plugin_without_python: PluginCopy) -> None:
    """If there is no usable Python, the answer to a command of the module contains the typed text.

    If the module sends a request that the user did not type, the request fails.
    """
    event = '{"command":"handoff","args":"next \\"x\\"","session_id":"x"}'
    done = plugin_without_python.run_engine("--module", stdin=event)
    assert json.loads(done.stdout)["text"].endswith('again.\n\nYour text was not sent: next "x"')
    assert (
        plugin_without_python.run_engine(
            "--module", stdin='{"command":"band","tokens":9}'
        ).returncode
        == 1
    )
