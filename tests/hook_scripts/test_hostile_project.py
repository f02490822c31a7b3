"""Tests that no event runs a program of a hostile repository, on different kinds of machines.

Each file in the repository is a trap that records its name if it runs. The environment contains the
variables that the repository's settings set.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from resume_hooks.cli.verb_table import VERBS
from resume_hooks.paths import project_key
from tests.builders import conversation, session_bytes, session_id
from tests.e2e.harness.processes import wait_until
from tests.needs import REPO, python39_path, require_for_test

SESSION_ID = session_id(7)
SYSTEM_TOOLS = (
    "cat",
    "cmp",
    "date",
    "head",
    "tail",
    "awk",
    "sed",
    "grep",
    "find",
    "mkdir",
    "ln",
    "rm",
    "touch",
    "sleep",
)
TRAP_PROGRAMS = (
    "python",
    "python3",
    *(f"python3.{minor}" for minor in range(9, 15)),
    "uv",
    "pip",
    "git",
    "node",
    "claude",
    "sh",
    "bash",
    "env",
    *SYSTEM_TOOLS,
    "ps",
    "tmux",
    "xclip",
    "xsel",
    "wl-copy",
    "wl-paste",
    "pbcopy",
    "clip.exe",
    "resume-hooks",
    "vi",
    "vim",
    "nano",
    "nice",
)
TRAP_MODULES = (
    "sitecustomize",
    "usercustomize",
    "json",
    "os",
    "orjson",
    "resume_hooks",
    "subprocess",
    "click",
    "encodings",
)
SHELL_PROGRAMS = (
    "sh",
    *SYSTEM_TOOLS,
    "git",
    "ps",
    "tr",
    "nice",
)
"""The programs on a machine that has neither Python nor uv."""

GIT_FILTER_SETTINGS = '[filter "x"]\n\tclean = {trap}\n\tprocess = {trap}\n'
GIT_SETTINGS_BY_FORM = {
    "one line": '[core][filter "x"] clean = {trap}\n[core]\n\tfsmonitor = {trap}\n',
    "a byte order mark": '\ufeff[filter "x"]\n\tclean = {trap}\n',
    "a carriage return": '[core]\r[filter "x"]\n\tclean = {trap}\n',
    "comments": "# comment\n" * 200_000 + GIT_FILTER_SETTINGS,
    "all": GIT_FILTER_SETTINGS
    + "[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n\thooksPath = {trap}.hooks\n\tsshCommand = {trap}\n"
    "[alias]\n\tstatus = !{trap}\n[diff]\n\texternal = {trap}\n[include]\n\tpath = more\n",
}

FAKE_UV_SCRIPT = """
place=$PWD
case " $* " in *" --no-config "*) ;; *)
    while [ -n "$place" ]; do [ ! -e "$place/uv.toml" ] || echo "uv.toml" >>"MARKS"; place=${place%/*}; done ;; esac
for python in "${UV_PYTHON-}" "${VIRTUAL_ENV-}/bin/python" "$PWD/.venv/bin/python" "$PWD/../.venv/bin/python"; do
    [ ! -x "$python" ] || exec "$python" -c ''
done
[ -z "${UV_CONFIG_FILE-}${UV_PROJECT-}${UV_ENV_FILE-}" ] || echo "a variable of uv" >>"MARKS"
exit 2
"""
"""Imitates how uv uses its working folder and its variables, according to the manual of uv.

The imitation finds no other Python.
"""


class Machine(NamedTuple):
    """A plugin, a hostile repository, and the environment in which the client runs hooks in it."""

    plugin_folder: Path
    session_folder: Path
    env: dict[str, str]
    trap_log: Path

    def run_program(self, *command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a program in the session's folder, and wait for its background processes to end."""
        done = subprocess.run(
            command,
            input=stdin,
            env=self.env,
            cwd=self.session_folder,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert wait_until(lambda: not self._background_pids()), "something still runs"
        return done

    def run_hooks(self, event: str, stdin: bytes) -> None:
        """Run all commands for an event."""
        hooks = json.loads((self.plugin_folder / "hooks" / "hooks.json").read_text())["hooks"]
        for command in hooks[event][0]["hooks"]:
            done = self.run_program("/bin/sh", "-c", command["command"], stdin=stdin)
            assert done.returncode == 0, done.stderr

    def traps_that_ran(self) -> list[str]:
        """Return the names of the traps that have run."""
        return sorted(set(self.trap_log.read_text().splitlines())) if self.trap_log.exists() else []

    def _background_pids(self) -> list[str]:
        home = f"HOME={self.env['HOME']}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if home in path.read_bytes().split(b"\0"):
                    found.append(path.parent.name)
            except OSError:
                continue
        return found


def write_script(path: Path, text: str) -> Path:
    """Write a shell script and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def write_hostile_repository(root: Path, trap_log: Path, git_settings: str) -> None:
    """Write every file that a program might look for in its working folder or in a parent folder."""
    trap = write_script(root / "trap", f"echo \"trap $0\" >>'{trap_log}'; cat")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y"]
    (root / "a").write_text("1\n")
    for words in (["init", "-q"], ["add", "a"], ["commit", "-qm", "one"]):
        subprocess.run(
            [*git, *words],
            cwd=root,
            check=True,
            env={"PATH": os.environ["PATH"], "HOME": str(root)},
        )
    for folder in (
        ".",
        "bin",
        ".venv/bin",
        "venv/bin",
        "node_modules/.bin",
        "data/venv/bin",
        "config/local",
    ):
        for name in TRAP_PROGRAMS:
            write_script(root / folder / name, f"echo '{folder}/{name}' >>'{trap_log}'; exit 0")
    (root / ".venv" / "pyvenv.cfg").write_text(f"home = {root}/bin\nversion = 3.12.0\n")
    for name in TRAP_MODULES:
        (root / f"{name}.py").write_text(
            f"open({str(trap_log)!r}, 'a').write('module {name}\\n')\n"
        )
        site = root / "user" / "lib" / "python3.11" / "site-packages"
        site.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / f"{name}.py", site)
    (root / "data" / "install.json").write_text("{}")
    shutil.copy(REPO / "requirements.lock", root / "data" / "venv")
    texts = {
        "uv.toml": 'python-downloads-json-url = "file:///nowhere"\n[pip]\nno-binary = [":all:"]\n',
        "pyproject.toml": '[project]\nname = "x"\nversion = "1"\n[tool.uv]\npython-preference = "system"\n',
        ".python-version": f"{root}/bin/python\n",
        "pip.conf": f"[global]\nlog = {trap_log}\n",
        "setup.cfg": "[easy_install]\n",
        ".npmrc": f"script-shell={trap}\n",
        ".envrc": f"{trap}\n",
        ".env": f"PATH={root}/bin\n",
        ".tool-versions": f"python path:{root}/bin\n",
        "mise.toml": f"[hooks]\nenter = '{trap}'\n",
        "gitconfig": GIT_SETTINGS_BY_FORM["all"].format(trap=trap),
        "profile.sh": f"echo profile >>'{trap_log}'\n",
        "require.js": f"require('fs').appendFileSync({json.dumps(str(trap_log))}, 'node\\n')\n",
        ".tmux.conf": f"run-shell {trap}\n",
        ".gitattributes": "* filter=x diff=x\n",
        ".git/more": GIT_FILTER_SETTINGS.format(trap=trap),
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    write_script(
        root / ".git" / "hooks" / "post-index-change", f"echo 'a hook of git' >>'{trap_log}'"
    )
    with (root / ".git" / "config").open("r+", encoding="utf-8") as config:
        before = config.read()
        config.seek(0)
        config.write(git_settings.format(trap=trap) + before)
    os.utime(root / "a", (1, 1))
    # git ran some of the traps while the repository was being created.
    trap_log.unlink(missing_ok=True)


def variables_of_repository(root: Path) -> dict[str, str]:
    """Return the variables in the section ``env`` of the repository's .claude/settings.json."""
    trap = str(root / "trap")
    folders = (
        str(root),
        ".",
        "",
        str(root / "bin"),
        str(root / "node_modules" / ".bin"),
        "./bin",
        "../bin",
    )
    return {
        "PATH": ":".join(folders),
        "RESUME_HOOKS_PYTHON": str(root / ".venv" / "bin" / "python"),
        "CLAUDE_PLUGIN_DATA": str(root / "data"),
        "PYTHONPATH": str(root),
        "PYTHONSTARTUP": str(root / "sitecustomize.py"),
        "PYTHONUSERBASE": str(root / "user"),
        "PYTHONBREAKPOINT": "sitecustomize",
        "VIRTUAL_ENV": str(root / ".venv"),
        "CONDA_PREFIX": str(root / ".venv"),
        "PYENV_DIR": str(root),
        "UV_PYTHON": str(root / ".venv" / "bin" / "python"),
        "UV_CONFIG_FILE": str(root / "uv.toml"),
        "UV_PROJECT": str(root),
        "UV_ENV_FILE": str(root / ".env"),
        "UV_PYTHON_INSTALL_DIR": str(root / "bin"),
        "UV_CACHE_DIR": str(root / "cache"),
        "UV_OFFLINE": "1",
        "PIP_CONFIG_FILE": str(root / "pip.conf"),
        "PIP_TARGET": str(root / "bin"),
        "PIP_LOG": str(root / "log"),
        "GIT_CONFIG_GLOBAL": str(root / "gitconfig"),
        "GIT_CONFIG_SYSTEM": str(root / "gitconfig"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": trap,
        "GIT_EXTERNAL_DIFF": trap,
        "GIT_SSH_COMMAND": trap,
        "GIT_PAGER": trap,
        "GIT_EXEC_PATH": str(root / "bin"),
        "GIT_TRACE": str(root / "log"),
        "PAGER": trap,
        "SHELL": trap,
        "BROWSER": trap,
        "BASH_ENV": str(root / "profile.sh"),
        "ENV": str(root / "profile.sh"),
        "CDPATH": str(root),
        "NODE_OPTIONS": f"--require={root}/require.js",
        "npm_config_userconfig": str(root / ".npmrc"),
        "TMUX_CONF": str(root / ".tmux.conf"),
        "XDG_CONFIG_HOME": str(root),
        "XDG_DATA_HOME": str(root),
        "TMPDIR": str(root),
        "OPENSSL_CONF": "./openssl.cnf",
        "OPENSSL_MODULES": str(root / "bin"),
        "LD_LIBRARY_PATH": f"{root}/bin::.",
    }


def install_engine(plugin: Path) -> None:
    """Install the engine next to the plugin, as in a repository."""
    write_script(plugin / ".venv" / "bin" / "python", f'exec "{sys.executable}" "$@"')


@pytest.fixture(params=["uv", "real uv", "python3.9", "both", "neither", "engine"])
def extra_program_set(request: pytest.FixtureRequest) -> str:
    """Return the name of a set of additional programs, for example "both" for uv and Python."""
    found: str = request.param
    if found == "real uv":
        require_for_test("uv", shutil.which("uv"), "install uv")
    return found


@pytest.fixture
def machine(extra_program_set: str, tmp_path: Path) -> Machine:
    """Return a machine with these programs. The session's folder on it is in the hostile repository."""
    return make_machine(extra_program_set, tmp_path, GIT_SETTINGS_BY_FORM["all"])


def make_machine(extra_program_set: str, tmp_path: Path, git_settings: str) -> Machine:
    """Create a machine with this set of extra programs, a plugin, a session and the hostile repository."""
    trap_log, root, tools = tmp_path / "marks", tmp_path / "work" / "repo", tmp_path / "tools"
    plugin = tmp_path / "plugin"
    for name in ("hooks", "src", "requirements.lock", "requirements-team.lock"):
        origin = REPO / name
        if origin.is_dir():
            shutil.copytree(origin, plugin / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, plugin / name)
    tools.mkdir()
    for name in SHELL_PROGRAMS:
        require_for_test(name, shutil.which(name), "install it")
        (tools / name).symlink_to(str(shutil.which(name)))
    if extra_program_set == "real uv":
        (tools / "uv").symlink_to(str(shutil.which("uv")))
    if extra_program_set in {"uv", "both"}:
        write_script(tools / "uv", FAKE_UV_SCRIPT.replace("MARKS", str(trap_log)))
    if extra_program_set in {"python3.9", "both"}:
        write_script(tools / "python3", f'exec "{python39_path()}" "$@"')
    if extra_program_set == "engine":
        install_engine(plugin)
    (root / "pkg").mkdir(parents=True)
    write_hostile_repository(root, trap_log, git_settings)
    home = tmp_path / "home"
    config = home / ".claude"
    project = config / "projects" / project_key(str(root / "pkg"))
    project.mkdir(parents=True)
    records = conversation(4, session_id=SESSION_ID)
    for record in records:
        record["cwd"] = str(root / "pkg")
    (project / f"{SESSION_ID}.jsonl").write_bytes(session_bytes(records))
    given = variables_of_repository(root)
    env = {
        **given,
        "PATH": f"{given['PATH']}:{tools}",
        "HOME": str(home),
        "CLAUDE_PROJECT_DIR": str(root / "pkg"),
        "CLAUDE_PLUGIN_ROOT": str(plugin),
        "CLAUDE_ENV_FILE": str(tmp_path / "env.sh"),
    }
    (root / ".claude").mkdir()
    (root / ".claude" / "settings.json").write_text(json.dumps({"env": given}))
    return Machine(plugin, root / "pkg", env, trap_log)


def session_event(machine: Machine, name: str, **fields: object) -> bytes:
    """Return an event of the session in the client's form."""
    config = Path(machine.env["HOME"]) / ".claude"
    transcript = (
        config / "projects" / project_key(str(machine.session_folder)) / f"{SESSION_ID}.jsonl"
    )
    known = {
        "session_id": SESSION_ID,
        "transcript_path": str(transcript),
        "cwd": str(machine.session_folder),
        "hook_event_name": name,
    }
    return json.dumps({**known, **fields}, separators=(",", ":")).encode()


def test_no_event_runs_a_program_of_the_repository(machine: Machine) -> None:
    """Hooks run no program of the repository, whatever event of a session calls them.

    The events are session starts, prompts with and without a trigger, tool calls, and the ends of
    turns and sessions.
    """
    for source in ("startup", "resume", "clear", "compact"):
        machine.run_hooks("SessionStart", session_event(machine, "SessionStart", source=source))
    assert machine.traps_that_ran() == []
    for prompt in (
        "fix it",
        ">resume",
        ">session",
        ">handoff next",
        ">trim",
        ">search one",
        ">lineage",
        ">rollover x",
    ):
        machine.run_hooks(
            "UserPromptSubmit", session_event(machine, "UserPromptSubmit", prompt=prompt)
        )
        assert machine.traps_that_ran() == [], prompt
    machine.run_hooks(
        "PreToolUse",
        session_event(machine, "PreToolUse", tool_name="Bash", tool_input={"command": "hooks"}),
    )
    machine.run_hooks("Stop", session_event(machine, "Stop"))
    for reason in ("clear", "other"):
        machine.run_hooks("SessionEnd", session_event(machine, "SessionEnd", reason=reason))
    assert machine.traps_that_ran() == []


def test_no_program_runs_if_settings_are_not_loaded(machine: Machine) -> None:
    """If the repository's settings are not loaded, its other files run no program either.

    In this case, the client gives the user's PATH to hooks.
    """
    for name in variables_of_repository(machine.session_folder.parent):
        machine.env[name] = machine.env[name].rpartition(":")[2] if name == "PATH" else ""
    for source in ("startup", "compact"):
        machine.run_hooks("SessionStart", session_event(machine, "SessionStart", source=source))
    machine.run_hooks(
        "UserPromptSubmit", session_event(machine, "UserPromptSubmit", prompt=">handoff next")
    )
    assert machine.traps_that_ran() == []


def test_the_module_runs_no_program_of_the_repository(machine: Machine) -> None:
    """The module's requests to the engine run no program of the repository."""
    transcript = json.loads(session_event(machine, ""))["transcript_path"]
    for script in ("offered", "engine"):
        asked = session_event(machine, "", command="handoff", args="next")
        machine.run_program(
            "/bin/sh",
            str(machine.plugin_folder / "hooks" / script),
            "--module",
            transcript,
            stdin=asked,
        )
    assert machine.traps_that_ran() == []


def test_no_verb_runs_a_program_of_the_repository(machine: Machine) -> None:
    """No verb or installation runs a program of the repository, even if the user starts it there."""
    for verb in (*VERBS, "--version", "--install"):
        words = {
            "search": ["one"], "handoff": [SESSION_ID, "-n", "next", "--no-start"], "config": ["vault", "off"],
            "read": [f"{SESSION_ID}:1"], "install": ["--dry-run"], "rename": [SESSION_ID, "title"],
        }.get(verb, [SESSION_ID] if verb in {"info", "outline", "lineage", "trim", "fork"} else [])  # fmt: skip
        machine.run_program(
            "/bin/sh", str(machine.plugin_folder / "hooks" / "engine"), verb, *words
        )
        assert machine.traps_that_ran() == [], verb


@pytest.mark.parametrize("name", GIT_SETTINGS_BY_FORM)
def test_a_handoff_and_a_compaction_run_no_git_filter(tmp_path: Path, name: str) -> None:
    """A handoff and a compaction read the state of the repository without running git filters or hooks."""
    machine = make_machine("engine", tmp_path, GIT_SETTINGS_BY_FORM[name])
    machine.run_hooks(
        "UserPromptSubmit", session_event(machine, "UserPromptSubmit", prompt=">handoff next")
    )
    machine.run_hooks("SessionStart", session_event(machine, "SessionStart", source="compact"))
    assert machine.traps_that_ran() == []
    children = list((Path(machine.env["HOME"]) / ".claude" / "projects").glob("*/*.jsonl"))
    assert len(children) == 2, "a handoff was made"
    assert any("uncommitted" in child.read_text() for child in children), "git was asked"


def test_a_trap_that_runs_records_its_name(tmp_path: Path) -> None:
    """A trap that runs records its name, so the other tests would notice it."""
    machine = make_machine("neither", tmp_path, "")
    machine.run_program("/bin/sh", "-c", "cat; PATH=../bin; uv")
    assert machine.traps_that_ran() == ["./cat", "bin/uv"]


def test_variables_lose_paths_to_code_in_the_project(tmp_path: Path) -> None:
    """Variables that name code keep the user's own paths but lose paths in the project."""
    machine = make_machine("neither", tmp_path, "")
    script = f'. "{machine.plugin_folder}/hooks/programs"; /usr/bin/env'
    loaded = {
        "LD_LIBRARY_PATH": f".:/usr/lib:{machine.session_folder}",
        "OPENSSL_CONF": "x/y",
        "OPENSSL_MODULES": "/usr/lib/x",
    }
    env = {**machine.env, **loaded, "GCONV_PATH": str(machine.session_folder)}
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env=env,
        cwd=machine.session_folder,
        capture_output=True,
        check=True,
    )
    found = dict(row.split("=", 1) for row in done.stdout.decode().splitlines() if "=" in row)
    assert (found["LD_LIBRARY_PATH"], found["OPENSSL_MODULES"]) == ("/usr/lib", "/usr/lib/x")
    assert not found.get("GCONV_PATH")
    assert not {"OPENSSL_CONF", "BASH_ENV", "ENV", "CDPATH"} & found.keys()


@pytest.mark.parametrize(
    "name", ["OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_MODULES", "LD_PRELOAD"]
)
@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/cwd/x",
        "/proc/thread-self/cwd/x",
        "//proc/self/../self/cwd/lib/x",
        "/proc/self/environ",
    ],
)
def test_variables_with_a_path_through_proc_self_are_removed(
    tmp_path: Path, name: str, path: str
) -> None:
    """Variables that contain a path through ``/proc/self`` are removed.

    Such a path leads each process to a different folder, so the check would not see the folder that
    the program uses.
    """
    machine = make_machine("neither", tmp_path, "")
    (machine.session_folder / "lib").mkdir()
    script = f'. "{machine.plugin_folder}/hooks/programs"; printf %s "${{{name}-unset}}"'
    env = {**machine.env, name: path}
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env=env,
        cwd=machine.session_folder,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"unset"


@pytest.mark.parametrize(
    "pwd_value", ["/proc/self/cwd", "/proc/thread-self/cwd/", "{folder}/../{name}"]
)
def test_a_wrong_pwd_does_not_keep_relative_folders_on_path(tmp_path: Path, pwd_value: str) -> None:
    """If ``PWD`` has a wrong value, folders on PATH that depend on the working folder are still removed.

    The project could set ``PWD`` to such a value.
    """
    machine = make_machine("neither", tmp_path, "")
    folder = machine.session_folder
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    script = f'. "{machine.plugin_folder}/hooks/programs"; printf %s "$PATH"; pwd -P'
    env = machine.env | {
        "PWD": pwd_value.format(folder=folder, name=folder.name),
        "PATH": "/usr:/proc/self/cwd/bin:bin:/usr/bin:/bin",
        "LOCPATH": f"/workspace:{folder}",
    }
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=env, cwd=folder, capture_output=True, check=True
    )
    assert done.stdout.decode() == f"/usr:/usr/bin:/bin{folder.resolve()}\n"


@pytest.mark.parametrize(
    "zone", ["/proc/self/fd/0", "/dev/tty", ":/etc/passwd", "../../x", "./x", ":x"]
)
def test_a_time_zone_that_is_a_file_is_removed(tmp_path: Path, zone: str) -> None:
    """If the time zone names a file, the variable is removed; a zone's name or rule is kept.

    The C library would read the whole file, which may be a pipe or the hook's own event.
    """
    machine = make_machine("neither", tmp_path, "")
    script = (
        f'. "{machine.plugin_folder}/hooks/programs"; printf %s "${{TZ-unset}} ${{TZDIR-unset}}"'
    )
    for given, left in ((zone, "unset"), ("Europe/Berlin", "Europe/Berlin"), ("<-03>3", "<-03>3")):
        env = machine.env | {"TZ": given, "TZDIR": str(machine.session_folder)}
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            env=env,
            cwd=machine.session_folder,
            capture_output=True,
            check=True,
        )
        assert done.stdout.decode() == f"{left} unset"


@pytest.mark.parametrize(
    "state_folder", ["{folder}/.rh", "/proc/self/cwd/.rh", "{folder}/../other/.rh"]
)
def test_state_in_the_project_is_ignored(tmp_path: Path, state_folder: str) -> None:
    """RESUME_HOOKS_HOME is ignored if it names a folder in the project or in another repository.

    Notes in such a folder could make a hook send sessions to a stranger.
    """
    machine = make_machine("neither", tmp_path, "")
    (machine.session_folder / ".rh" / "pending").mkdir(parents=True)
    other = machine.session_folder.parent / "other"
    (other / ".rh" / "pending").mkdir(parents=True)
    (other / ".git").mkdir()
    script = f'. "{machine.plugin_folder}/hooks/programs"; find_state; printf %s "$state"'
    for given, own in (
        (state_folder.format(folder=machine.session_folder), False),
        (str(tmp_path / "own"), True),
    ):
        Path(tmp_path / "own" / "pending").mkdir(parents=True, exist_ok=True)
        env = machine.env | {"RESUME_HOOKS_HOME": given}
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            env=env,
            cwd=machine.session_folder,
            capture_output=True,
            check=True,
        )
        assert (done.stdout.decode() == given) is own


@pytest.mark.parametrize(
    "home", [{"HOME": "."}, {"HOME": "{root}"}, {"USER": "-", "OLDPWD": "{root}"}, {"USER": "+"}]
)
@pytest.mark.parametrize("kind", ["uv", "python3.9"])
def test_a_repository_cannot_be_the_home_folder(
    tmp_path: Path, kind: str, home: dict[str, str]
) -> None:
    """If HOME is in the repository, hooks use the user's home folder from the system's list of users."""
    machine = make_machine(kind, tmp_path, "")
    given = {name: value.format(root=machine.session_folder.parent) for name, value in home.items()}
    hostile = machine._replace(env=machine.env | given)
    (machine.session_folder / ".claude").mkdir()
    (machine.session_folder / ".claude" / "plugins").mkdir()
    shutil.copytree(
        machine.session_folder.parent / "data",
        machine.session_folder / ".claude/plugins/data/resume-hooks-resume-hooks",
    )
    shutil.copytree(
        machine.session_folder / ".claude/plugins",
        machine.session_folder.parent / ".claude/plugins",
    )
    for source in ("startup", "compact"):
        hostile.run_hooks("SessionStart", session_event(machine, "SessionStart", source=source))
    hostile.run_hooks(
        "UserPromptSubmit", session_event(machine, "UserPromptSubmit", prompt=">handoff next")
    )
    del hostile.env["CLAUDE_PLUGIN_DATA"]
    hostile.run_hooks(
        "UserPromptSubmit", session_event(machine, "UserPromptSubmit", prompt=">handoff next")
    )
    assert machine.traps_that_ran() == []


SPECIAL_BUILTINS = {
    ".",
    ":",
    "break",
    "continue",
    "eval",
    "exec",
    "exit",
    "export",
    "readonly",
    "return",
    "set",
    "shift",
    "source",
    "times",
    "trap",
    "unset",
}
"""Commands that a shell function cannot replace if bash runs as ``sh``."""


def test_no_shell_function_replaces_a_command(tmp_path: Path) -> None:
    """If sh is bash, functions from the environment do not replace any command in the scripts."""
    bash = shutil.which("bash")
    require_for_test("bash", bash, "install it")
    machine = make_machine("neither", tmp_path, "")
    (tmp_path / "as").mkdir()
    (tmp_path / "as" / "sh").symlink_to(str(bash))
    listed = subprocess.run([str(bash), "-c", "compgen -b"], capture_output=True, check=True)
    builtins = set(listed.stdout.decode().split()) - SPECIAL_BUILTINS
    functions = {
        f"BASH_FUNC_{name}%%": f"() {{ set >>'{machine.trap_log}'; }}"
        for name in builtins | {"cat", "rm", "sed", "awk", "grep", "date", "mkdir", "sleep", "uv"}
    }
    path = {"PATH": f"{tmp_path / 'as'}:{machine.env['PATH']}"}
    hostile = machine._replace(env=machine.env | functions | path)
    for script in ("guard", "session-start", "notice"):
        line = f"trap 'exit 0' EXIT; . '{machine.plugin_folder}/hooks/{script}'"
        hostile.run_program(
            str(tmp_path / "as" / "sh"),
            "-c",
            line,
            stdin=session_event(machine, "", prompt=">resume"),
        )
    assert machine.traps_that_ran() == []


@pytest.mark.parametrize("is_home_of_user", [True, False])
def test_the_installer_reads_no_settings_of_the_project(
    tmp_path: Path, is_home_of_user: bool
) -> None:
    """The installer runs programs with the user's HOME and without PIP_CONFIG_FILE.

    If HOME is inside the project, it is replaced, because a pip.conf in it could name the Python
    that pip runs.
    """
    user = pwd.getpwuid(os.getuid())
    env = {
        "HOME": str(tmp_path if is_home_of_user else tmp_path / "repo" / "x"),
        "USER": user.pw_name,
        "PATH": "/usr/bin:/bin",
    }
    (tmp_path / "repo" / "x").mkdir(parents=True)
    script = f'. "{REPO}/hooks/programs"; run_isolated /usr/bin/env; run_isolated pwd'
    given = {**env, "PIP_CONFIG_FILE": "x", "PIP_INDEX_URL": "https://host/"}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=given, cwd=tmp_path / "repo", capture_output=True, check=True
    )
    *rows, folder = done.stdout.decode().splitlines()
    assert sorted(rows) == [
        f"HOME={tmp_path if is_home_of_user else os.path.realpath(user.pw_dir)}",
        "PATH=/usr/bin:/bin",
        "PIP_INDEX_URL=https://host/",
        f"USER={user.pw_name}",
    ]
    assert folder == "/"


def test_the_home_folder_is_not_a_project(tmp_path: Path) -> None:
    """Programs in the home folder stay on PATH, even if it or one of its parents is a repository.

    Relative folders on PATH are removed even if the working folder is the home folder.
    """
    user = pwd.getpwuid(os.getuid())
    script = f'. "{REPO}/hooks/programs"; echo "$PATH"'
    env = {
        "HOME": str(tmp_path),
        "USER": user.pw_name,
        "PATH": f"bin::{user.pw_dir}:{tmp_path}:/bin",
    }
    for folder, left in (
        ("/", f"{user.pw_dir}:{tmp_path}:/bin"),
        (tmp_path, f"{user.pw_dir}:/bin"),
    ):
        given = {**env, "CLAUDE_PROJECT_DIR": str(folder)}
        done = subprocess.run(
            ["/bin/sh", "-c", script], env=given, cwd=folder, capture_output=True, check=True
        )
        assert done.stdout.decode() == f"{left}\n"
