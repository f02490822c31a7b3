"""Check an installation. Each check is a function. If a finding needs attention, it includes a remedy."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks import clock, part_table, questions, settings
from resume_hooks.archive import link_sessions
from resume_hooks.archive.retention.expiring import forecast_expiry
from resume_hooks.archive.vault import permission
from resume_hooks.archive.vault.packs import find_unreadable_folders
from resume_hooks.archive.vault.trash import list_stray_folders, list_trashed_sessions
from resume_hooks.paths import Where, is_own_file, read_json_object
from resume_hooks.seam import insert_part_names
from resume_hooks.search.index.connect import index_status
from resume_hooks.sessions import held_links, locate
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.archived.manifest import list_archived as kept_sessions
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system import bug_log, claude_cli, clipboard, programs
from resume_hooks.system.claude_settings import find_policy_file
from resume_hooks.system.plugin_files import (
    CHECKOUT_FOLDER,
    MARKETPLACE_NAME,
    PLUGIN_NAME,
    plugin_folder,
)
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.lines import (
    MIN_GIANT_FILE_BYTES,
    MIN_GIANT_LINE_BYTES,
    measure_longest_line,
)
from resume_hooks.transcripts.transcript import is_live_part_within_bytes
from resume_hooks.version import __version__

PRIVATE_FOLDER_NAMES = ("pending", "log")
"""Subfolders of the state folder that contain only this plugin's files."""

MAX_FOLDER_ENTRIES = 10_000
"""The maximum number of entries that are checked in a folder."""

RIVAL_TOOL_WORDS = ("aichat", "claude-code-tools", "resume_hook.py", "session-resume")
"""Words in the hooks of other tools that answer the same triggers."""

MIN_FREE_BYTES = 1_000_000
"""A disk with fewer free bytes is reported as full."""

MAX_SEARCHED_BYTES = 2_000_000_000
"""The maximum number of bytes that are read to find giant lines. The largest files are read first.
Reading this number of bytes takes about two seconds."""


class Finding(NamedTuple):
    """The result of a check.

    ``level`` is ok, note or problem. A note is about something that works but is worth knowing, and
    a problem is something that will not work. ``code`` identifies the finding for programs and
    never changes. It is ``<name>-<level>`` if the check has only one finding of that level.
    """

    name: str
    level: str
    detail: str
    remedy: str = ""
    code: str = ""


def check_installation(cwd: str) -> list[Finding]:
    """Return the findings of all checks. A check runs after the checks on which it depends."""
    checks: dict[str, Callable[[str], Finding]] = {
        "client": _check_client,
        "hooks": _check_hooks,
        "policy": _check_policy,
        "plugin": _check_plugin,
        "engine": _check_engine,
        "other agents": _check_other_agents,
        "other tools": _check_other_tools,
        "transcripts": _check_transcripts,
        "giants": _check_giant_files,
        "expiry": _check_expiry,
        "state": _check_state_folder,
        "settings": _check_settings,
        "log": _check_log,
        "index": _check_index,
        "trash": _check_trash,
        "vault": _check_vault,
        "clipboard": _check_clipboard,
    }
    findings = []
    for name in insert_part_names(checks, part_table.CHECKS):
        if name in checks:
            check = checks[name]
        else:
            part, function, _ = part_table.CHECKS[name]
            check = questions.run_doctor_check.load_function(part, function)
        findings.append((name, check(cwd)))
    return [
        finding._replace(name=name, code=f"{name.replace(' ', '-')}-{finding.code}")
        for name, finding in findings
    ]


def make_ok_finding(detail: str, code: str = "ok") -> Finding:
    """Return a finding with the level ok."""
    return Finding("", "ok", detail, "", code)


def make_note_finding(detail: str, remedy: str = "", code: str = "note") -> Finding:
    """Return a finding with the level ``note``: something works, but the user should know about it."""
    return Finding("", "note", detail, remedy, code)


def make_problem_finding(detail: str, remedy: str, code: str = "problem") -> Finding:
    """Return a finding with the level ``problem``: something will not work."""
    return Finding("", "problem", detail, remedy, code)


def _uses_only_other_agents() -> bool:
    """Check whether the user has another agent, and Claude Code is neither installed nor has sessions."""
    where = Where()
    if programs.find_program("claude", os.environ) is not None or os.path.isdir(where.projects):
        return False
    return any(
        agent.name in registry.RESUMABLE_AGENT_NAMES for agent in registry.list_other_agents(where)
    )


def _check_client(_: str) -> Finding:
    if _uses_only_other_agents():
        return make_note_finding(
            "Claude Code is not installed, and has no sessions on this computer", code="unused"
        )
    if programs.find_program("claude", os.environ) is None:
        return make_problem_finding(
            "claude is not on PATH", "Install Claude Code, or add it to PATH.", "missing"
        )
    version = claude_cli.read_client_version()
    if version is None:
        return make_problem_finding(
            "claude does not print its version", "Run: claude --version", "silent"
        )
    text = ".".join(map(str, version))
    if version < claude_cli.OLDEST_TESTED_CLIENT_VERSION:
        oldest_text = ".".join(map(str, claude_cli.OLDEST_TESTED_CLIENT_VERSION))
        return make_problem_finding(
            f"Claude Code {text} is older than {oldest_text}", "Run: claude update", "old"
        )
    return make_ok_finding(f"Claude Code {text}")


def _check_hooks(cwd: str) -> Finding:
    for key in ("disableAllHooks", "allowManagedHooksOnly"):
        if path := claude_cli.find_settings_file_that_enables(key, cwd):
            remedy = (
                "Remove this setting from the file. Until then, no hook answers the slash commands, "
                "and the model runs them."
            )
            return make_problem_finding(f"{key} is true in {path}", remedy, "off")
    return make_ok_finding("not switched off in any settings file")


def _check_policy(_: str) -> Finding:
    path = find_policy_file(Where())
    if not path:
        return make_ok_finding("none: no organization's settings apply to this machine")
    disabled = "'/trim here', the setting 'compaction', and our lines above the prompt at the start of a session"
    return make_note_finding(
        f"{path} is in force, and disables {disabled}",
        "Trimmed copies, handoffs and everything else still work.",
        "managed",
    )


def _check_plugin(cwd: str) -> Finding:
    plugins = {
        name: is_enabled
        for name, is_enabled in claude_cli.read_enabled_plugins(cwd).items()
        if name.split("@")[0] == PLUGIN_NAME
    }
    if not plugins and _uses_only_other_agents():
        return make_note_finding(
            "not installed in Claude Code, which is not installed either", code="unused"
        )
    if not plugins:
        return make_problem_finding(
            "not installed in this config folder", "Run: resume-hooks install", "missing"
        )
    if not any(plugins.values()):
        name = next(iter(plugins))
        return make_problem_finding(
            f"{name} is switched off", f"Run: claude plugin enable {name}", "off"
        )
    manifest = os.path.join(plugin_folder(), ".claude-plugin", "plugin.json")
    plugin_version = read_json_object(manifest).get("version", __version__)
    if (
        plugin_version != __version__
        and claude_cli.marketplace_folder(MARKETPLACE_NAME) == plugin_folder()
    ):
        detail = (
            f"{', '.join(plugins)} is enabled in version {plugin_version}, but this program is "
            f"version {__version__}"
        )
        return make_note_finding(detail, "Run: resume-hooks install", "version")
    return make_ok_finding(f"{', '.join(plugins)} is enabled")


def _check_engine(_: str) -> Finding:
    engine_text = f"Python {sys.version.split()[0]} at {sys.executable}"
    folder = claude_cli.marketplace_folder(MARKETPLACE_NAME)
    # The hooks prefer this folder, but some clients run the hooks from a copy of the plugin's
    # folder.
    checkout_venv = os.path.join(folder, ".venv")
    has_checkout_venv = bool(folder) and os.path.isdir(checkout_venv)
    data_folder = os.path.join(Where().config, "plugins", "data")
    names = list[str]()
    with contextlib.suppress(OSError):
        names = os.listdir(data_folder)
    states = []
    for name in names:
        if name.startswith(PLUGIN_NAME):
            states.append(read_json_object(os.path.join(data_folder, name, "install.json")))
    states_by_start = [
        (started if isinstance(started := state.get("started"), (int, float)) else 0, state)
        for state in states
    ]
    last_state = max(states_by_start, key=lambda pair: pair[0])[1] if states_by_start else {}
    if last_state.get("state") == "failed":
        engine_script = os.path.join(folder or CHECKOUT_FOLDER, "hooks", "engine")
        remedy = (
            f"Fix the cause, then run: sh {shlex.quote(engine_script)} --install (a "
            "session that starts an hour or more after the failure tries again, too)"
        )
        detail = f"the plugin's own install failed: {last_state.get('error')}"
        if has_checkout_venv:
            return make_note_finding(
                f"{detail}; a client that loads the plugin from {folder} uses the .venv there",
                remedy,
                "install-failed",
            )
        return make_problem_finding(detail, remedy, "install-failed")
    if last_state.get("state") == "installing":
        detail = "the plugin's own install is running"
        return make_note_finding(detail, "Wait a minute, then run doctor again.", "installing")
    if last_state.get("state") != "ready":
        if has_checkout_venv:
            return make_ok_finding(
                f"{engine_text}; the plugin uses {checkout_venv}, or installs its own engine at the next start"
            )
        return make_ok_finding(
            f"{engine_text}; the plugin's own engine will be installed at the next start"
        )
    if tool := last_state.get("tool"):
        return make_ok_finding(
            f"{engine_text}; the plugin's own engine uses the packages of {tool}"
        )
    return make_ok_finding(f"{engine_text}; the plugin's own engine is ready")


def _check_other_agents(_: str) -> Finding:
    where = Where()
    agent_texts, install_commands = [], []
    for agent in registry.list_other_agents(where):
        if agent.name in registry.NAMES_OF_AGENTS_WITH_PARTIAL_SESSIONS:
            continue
        agent_texts.append(f"{agent.label}: {format_count(len(agent.store.sessions()), 'session')}")
        if install_command := agent.plugin_install_command(PLUGIN_NAME):
            agent_texts[-1] += ", without the plugin"
            install_commands.append(install_command)
    if install_commands:
        return make_note_finding(
            "; ".join(agent_texts),
            f"In the folder of this plugin: {' && '.join(install_commands)}",
            "without",
        )
    return make_ok_finding("; ".join(agent_texts) or "none except Claude Code")


def _check_other_tools(cwd: str) -> Finding:
    rival_plugins = sorted(
        {
            where
            for where, command in claude_cli.iterate_prompt_hooks(cwd)
            if any(word in command for word in RIVAL_TOOL_WORDS)
        }
    )
    for name, is_enabled in claude_cli.read_enabled_plugins(cwd).items():
        if is_enabled and name.split("@")[0] in RIVAL_TOOL_WORDS:
            rival_plugins.append(name)
    if rival_plugins:
        rival_names = ", ".join(dict.fromkeys(rival_plugins))
        remedy = (
            "Switch one of the two off: both would answer >resume. Or run: resume-hooks "
            "config triggers_off full"
        )
        return make_problem_finding(
            f"the same triggers are also answered by {rival_names}", remedy, "answer"
        )
    return make_ok_finding("no other tool answers the same triggers")


def _check_transcripts(cwd: str) -> Finding:
    here_count, total = (
        len(locate.sessions_of_directory(cwd, Where())),
        len(locate.all_sessions(Where())),
    )
    if unlistable := locate.unlistable_folders(Where()):
        if len(unlistable) > 1:
            others_text = f" and {len(unlistable) - 1:,} more"
        else:
            others_text = ""
        remedy = f"Check its permissions and its owner: ls -ld {shlex.quote(unlistable[0])}"
        detail = (
            f"{unlistable[0]}{others_text} can't be listed; the other folders have "
            f"{format_count(total, 'session')}"
        )
        return make_problem_finding(detail, remedy, "hidden")
    if not total:
        remedy = "Start Claude Code once, or set CLAUDE_CONFIG_DIR to the folder that it uses."
        return make_note_finding(f"none under {Where().projects}", remedy, "none")
    return make_ok_finding(
        f"{format_count(total, 'session')}, {here_count:,} of this folder, under {Where().projects}"
    )


def _check_giant_files(_: str) -> Finding:
    giants, remaining_bytes = list[tuple[SessionFile, int]](), MAX_SEARCHED_BYTES
    for session in sorted(locate.all_sessions(Where()), key=lambda session: -session.size):
        if session.size < MIN_GIANT_LINE_BYTES:
            break
        remaining_bytes -= session.size
        longest_line = 0
        with contextlib.suppress(OSError):  # The file was deleted after it was listed.
            longest_line = measure_longest_line(session.path) if remaining_bytes >= 0 else 0
        if session.size >= MIN_GIANT_FILE_BYTES or longest_line >= MIN_GIANT_LINE_BYTES:
            giants.append((session, longest_line))
    if not giants:
        return make_ok_finding(
            f"no transcript of {format_bytes(MIN_GIANT_FILE_BYTES)} or more, no line of "
            f"{format_bytes(MIN_GIANT_LINE_BYTES)} or more"
        )
    (first_giant, longest_line), others_text = (
        giants[0],
        f", and {len(giants) - 1:,} more" if len(giants) > 1 else "",
    )
    if longest_line >= MIN_GIANT_LINE_BYTES:
        line_text = f", one line of it {format_bytes(longest_line)}"
    else:
        line_text = ""
    sizes_text = f"{format_bytes(first_giant.size)}{line_text}{others_text}"
    detail = f"{first_giant.path} has {sizes_text}; the client may hang on this file"
    if longest_line < MIN_GIANT_LINE_BYTES and is_live_part_within_bytes(
        first_giant.path, MIN_GIANT_FILE_BYTES // 2
    ):
        remedy = (
            "Continue in a smaller copy with only its live conversation: resume-hooks fork "
            f"{first_giant.session_id[:8]}"
        )
    else:
        remedy = (
            "Continue in a copy without its large contents: resume-hooks archive --slim "
            f"{first_giant.session_id[:8]}"
        )
    return make_note_finding(detail, remedy, "found")


def _check_expiry(cwd: str) -> Finding:
    expiry = forecast_expiry(cwd, Where())
    retention, path = expiry.retention
    if path:
        source = f"cleanupPeriodDays in {path}"
    else:
        source = "the client's default"
    if retention is None:
        return make_ok_finding(
            f"the client deletes no session ({source} is not a number of days)", code="never"
        )
    forecast = (
        f"sessions are deleted {format_count(retention, 'day')} after their last write ({source})"
    )
    if expiry.earliest_deletion_time is None:
        return make_ok_finding(f"{forecast}; none within seven days")
    forecast += f"; {format_count(expiry.session_count, 'session')} in {format_count(expiry.project_count, 'project')}"
    forecast += (
        f", and files of {expiry.younger_session_count:,} younger sessions,"
        if expiry.younger_session_count
        else ""
    )
    is_single = expiry.session_count == 1 and not expiry.younger_session_count
    forecast += f" expire{'s' if is_single else ''} within seven days"
    forecast += f", from {clock.format_minute(clock.timestamp_from_epoch(expiry.earliest_deletion_time))} UTC on"
    is_allowed, reason = permission.check_archiving_allowed(Where())
    if not is_allowed:
        return make_note_finding(f"{forecast}; none is archived: {reason}", code="unkept")
    if expiry.unarchived_count:
        remedy = (
            "The next session of each project archives that project's sessions. To archive all now: "
            "resume-hooks archive --all"
        )
        return make_note_finding(
            f"{forecast}; {expiry.unarchived_count:,} of them are not in the vault yet",
            remedy,
            "soon",
        )
    return make_ok_finding(f"{forecast}; the vault has all of them", code="kept")


def _check_state_folder(_: str) -> Finding:
    folder = Where().state
    if full_disk := _find_full_disk(folder) or _find_full_disk(Where().projects):
        return full_disk
    if not os.path.lexists(folder):
        return _check_missing_state_folder(folder)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        return make_problem_finding(
            f"{folder} is not a folder",
            "Move it away; a folder is created in its place.",
            "no-folder",
        )
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        remedy = f"Run: sudo chown -R $USER {folder}"
        return make_problem_finding(f"{folder} belongs to another user", remedy, "foreign")
    if status.st_mode & 0o077:
        return make_problem_finding(
            f"other users can read {folder}", f"Run: chmod 700 {folder}", "open"
        )
    if not os.access(folder, os.W_OK):
        return make_problem_finding(
            f"{folder} can't be written",
            f"Run: chmod 700 {folder} - or, if its disk is read-only, set RESUME_HOOKS_HOME to "
            "another folder.",
            "read-only",
        )
    if problems := find_state_folder_problems(folder):
        if len(problems) > 1:
            others_text = f", and {len(problems) - 1:,} more like it"
        else:
            others_text = ""
        return make_problem_finding(
            f"{problems[0].path} {problems[0].description}{others_text}", problems[0].remedy, "odd"
        )
    return make_ok_finding(f"{folder} is private and writable")


class StateFolderProblem(NamedTuple):
    """An unexpected entry in the state folder.

    ``description`` continues a sentence that starts with the path. ``remedy`` is a command.
    """

    path: str
    description: str
    remedy: str


def find_state_folder_problems(folder: str) -> list[StateFolderProblem]:
    """Return the unexpected entries of a state folder, ordered by name.

    Entries that cannot be read are skipped.
    """
    paths = itertools.chain(
        _list_paths_in_folder(folder),
        *(_list_paths_in_folder(os.path.join(folder, name)) for name in PRIVATE_FOLDER_NAMES),
    )
    return [
        problem
        for path in itertools.islice(paths, MAX_FOLDER_ENTRIES)
        if (problem := _find_path_problem(path))
    ]


def _list_paths_in_folder(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entry.path for entry in entries if not os.path.islink(folder))
    except OSError:
        return


def _find_path_problem(path: str) -> StateFolderProblem | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None  # The file was deleted after it was listed.
    quoted_path, mode = shlex.quote(path), status.st_mode
    if stat.S_ISLNK(mode):
        return StateFolderProblem(
            path, "is a symbolic link, which is not followed", f"Run: rm {quoted_path}"
        )
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return StateFolderProblem(path, "is neither a file nor a folder", f"Run: rm {quoted_path}")
    if not is_own_file(status):
        return StateFolderProblem(
            path, "belongs to another user", f"Run: sudo chown -R $USER {quoted_path}"
        )
    if stat.S_ISREG(mode) and status.st_nlink > 1:
        return StateFolderProblem(
            path,
            "has a second hard link elsewhere",
            f"Run: cp {quoted_path} {quoted_path}.new && mv {quoted_path}.new {quoted_path}",
        )
    if mode & 0o077:
        return StateFolderProblem(
            path, "can be read or written by other users", f"Run: chmod -R go-rwx {quoted_path}"
        )
    return None


def _find_full_disk(folder: str) -> Finding | None:
    """Return a problem if the disk that contains a folder is full, else None. The folder may be missing."""
    place = _find_nearest_existing_path(folder)
    try:
        free_bytes = shutil.disk_usage(place).free
    except OSError:
        return None  # If a folder cannot be read, another check reports it.
    if free_bytes >= MIN_FREE_BYTES:
        return None
    return make_problem_finding(
        f"the disk of {folder} has {format_bytes(free_bytes)} free: sessions, marks, settings and "
        "the index can't be written",
        f"Free some space on it, then check: df -h {shlex.quote(place)}",
        "full",
    )


def _find_nearest_existing_path(path: str) -> str:
    """Return a path or, if it does not exist, its nearest existing parent."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _check_missing_state_folder(folder: str) -> Finding:
    """Check whether a missing state folder can be created in its nearest existing parent."""
    parent = _find_nearest_existing_path(folder)
    if os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK):
        return make_ok_finding(f"{folder} is created when it is first needed")
    if os.path.isdir(parent):
        reason = "can't be written"
    else:
        reason = "is not a folder"
    remedy = (
        f"See what it is: ls -ld {shlex.quote(parent)} - or set RESUME_HOOKS_HOME to a "
        "folder that can be written."
    )
    return make_problem_finding(
        f"{folder} can't be created: {parent} {reason}", remedy, "unmakable"
    )


def _check_settings(_: str) -> Finding:
    if invalid_settings := settings.describe_invalid_settings():
        remedy = (
            "Set the value again: resume-hooks config KEY VALUE; for an option of the plugin: /plugin "
            "configure resume-hooks"
        )
        return make_problem_finding("; ".join(invalid_settings), remedy, "refused")
    if former_settings := settings.describe_former_settings():
        return make_note_finding(
            " ".join(former_settings), "Remove each of these settings from its source.", "former"
        )
    return make_ok_finding("every value is valid")


def _check_log(_: str) -> Finding:
    entries = bug_log.read_log_entries(Where())
    if not entries:
        return make_ok_finding("no bug was recorded")
    bugs_text = "a bug" if len(entries) == 1 else f"{len(entries):,} bugs"
    detail = (
        f"{bugs_text} recorded in {bug_log.log_file_path(Where())}, the last one on "
        f"{clock.format_minute(entries[-1])} UTC"
    )
    remedy = "Report it with the output of: resume-hooks doctor --bundle"
    return make_note_finding(detail, remedy, "bugs")


def _check_index(_: str) -> Finding:
    status = index_status(Where())
    if status.state == "newer":
        return make_problem_finding(
            f"a newer resume-hooks wrote {status.index_path}", "Update this one.", "newer"
        )
    if status.state != "ready":
        return make_note_finding(
            f"{status.state}; the next search rebuilds it", code=f"{status.state}"
        )
    if status.outdated_file_count:
        changed_text = f", {format_count(status.outdated_file_count, 'file')} behind; the next search reads them"
    else:
        changed_text = ""
    return make_ok_finding(
        f"{format_bytes(status.index_bytes)} for {format_count(status.transcript_count, 'transcript')}{changed_text}"
    )


def _check_trash(_: str) -> Finding:
    entries, stray_folders = list_trashed_sessions(Where()), list_stray_folders(Where())
    half_removed_count = sum(stray.is_half_removed for stray in stray_folders)
    problems = []
    if not all(entry.complete for entry in entries):
        problems.append("a deletion was interrupted")
    if half_removed_count:
        problems.append(format_count(half_removed_count, "partly removed folder"))
    if len(stray_folders) > half_removed_count:
        problems.append(format_count(len(stray_folders) - half_removed_count, "unknown folder"))
    if stray_folders:
        problems.append(format_bytes(sum(stray.size for stray in stray_folders)))
    if problems:
        return make_note_finding(
            ", ".join(problems), "See the list: resume-hooks restore --list", "odd"
        )
    if not entries:
        return make_ok_finding("empty")
    size = format_bytes(sum(entry.size for entry in entries))
    return make_ok_finding(
        f"deleted sessions: {len(entries):,}, {size}; resume-hooks restore lists them"
    )


def _check_vault(_: str) -> Finding:
    is_allowed, reason = permission.check_archiving_allowed(Where())
    archived, damaged_sessions = kept_sessions(Where()), find_unreadable_folders(Where())
    if damaged_sessions:
        damage_text = (
            f"{len(damaged_sessions):,} unreadable, such as: {damaged_sessions[0].message}"
        )
        return make_problem_finding(
            damage_text, "See what is wrong: resume-hooks archive --verify", "odd"
        )
    sizes_text = f"archived copies: {len(archived):,}, {format_bytes(sum(session.stored for session in archived))}"
    if not is_allowed:
        return make_note_finding(f"{sizes_text}; no new copies are made: {reason}", code="off")
    if detail := permission.format_waiting_notice(Where()):
        return make_note_finding(
            f"{sizes_text}. {detail}",
            "To make the copies sooner: resume-hooks config vault on",
            "awaited",
        )
    max_size, stored_size = settings.vault_limit(), sum(session.stored for session in archived)
    if max_size and stored_size > max_size:
        remedy = (
            "Copies are kept if an existing session descends from them. To raise the limit: "
            "resume-hooks config vault 40G"
        )
        return make_note_finding(
            f"{sizes_text}, more than the setting vault allows", remedy, "full"
        )
    if reason := link_sessions.find_reason_not_to_link(Where()):
        return make_note_finding(
            f"{sizes_text}; no link protects them from an early deletion: {reason}", code="unheld"
        )
    if os.path.isdir(held_links.links_folder(Where())) and (
        missing_count := link_sessions.count_sessions_without_link(Where())
    ):
        detail = (
            f"{sizes_text}; {format_count(missing_count, 'session')} not protected from an early deletion: no "
            "link could be made"
        )
        return make_note_finding(
            detail,
            f"See whether links can be made from {Where().projects} to {Where().state}.",
            "unheld",
        )
    return make_ok_finding(sizes_text if archived else "empty")


def _check_clipboard(_: str) -> Finding:
    clipboard_programs = clipboard.list_clipboard_methods()
    if not clipboard_programs:
        remedy = "Install xclip or wl-clipboard; without one, the message shows the text to copy."
        return make_note_finding("no clipboard program found", remedy, "none")
    return make_ok_finding(f"tried in this order: {', '.join(clipboard_programs)}")
