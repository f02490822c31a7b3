"""The entry point of the command line. It turns each failure into a message and an exit code.

The module of a verb is imported only if that verb is called. For example, ``lineage`` does not load
the modules of ``doctor``.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

import click

from resume_hooks.cli.output import (
    COMPLETION_VARIABLE,
    find_colour_preference,
    make_failure_document,
    print_document,
    print_text,
    replace_unencodable_characters,
)
from resume_hooks.cli.verb_table import VERB_ALIASES, VERBS, is_verb, load_command
from resume_hooks.errors import (
    AmbiguousLocator,
    ExitCode,
    Interrupted,
    OutputFailed,
    ResumeHooksError,
    UsageError,
    convert_disk_error,
)
from resume_hooks.system import bug_log
from resume_hooks.system.invocation import format_remedy
from resume_hooks.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

BUG_EXIT_CODE = 3


class VerbGroup(click.Group):
    """The command ``resume-hooks``. Its help and completion list the verbs without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the verbs, in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a verb and return its command. Return None for an unknown name.

        Raise UsageError for the name of a command that can only be typed in Claude Code.
        """
        if is_verb(cmd_name):
            return load_command(cmd_name)
        # Imported late because verbs do not need it.
        from resume_hooks.hooks.triggers import TRIGGER_TABLE
        from resume_hooks.shared_values import COMMAND_PREFIX

        row = next(
            (row for row in TRIGGER_TABLE.values() if cmd_name in {row.command, row.name}), None
        )
        if row is None:
            return None
        if is_verb(row.name):
            shell_hint = f"; in a shell it is `{row.name}`"
        else:
            shell_hint = ""
        typed_name = f"/{row.command}" if row.command else f"{COMMAND_PREFIX}{row.name}"
        raise UsageError(
            f"{typed_name} is for Claude Code{shell_hint}",
            f"resume-hooks {row.name} --help" if shell_hint else "resume-hooks --help",
        )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the verbs that complete a word, or the options of ``resume-hooks`` if no verb does."""
        # Imported late because only completion needs it.
        from click.shell_completion import CompletionItem

        verbs = []
        for name, line in VERBS.items():
            if name.startswith(incomplete):
                verbs.append(CompletionItem(name, help=line))
        return verbs or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of verbs into the help, without importing the verbs."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.command(
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="SESSION is one of: a session id (or at least four of its first characters), a title (or at least three "
    "letters of it), a tag, the path of a .jsonl file, latest, latest~2, or '#72' for a pull request. The default is "
    "the latest session of this folder.",
)
@click.version_option(__version__, prog_name="resume-hooks")
def cli() -> None:
    """Continue a full Claude Code session in a new one, without losing a byte of it."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command line, by default the arguments of this process, and exit with its exit code."""
    given_arguments = sys.argv[1:] if arguments is None else arguments
    replace_unencodable_characters()
    exit_code = run(given_arguments)
    # Without this call the garbage collector would scan all objects once more at exit, which takes
    # 10 ms.
    gc.freeze()
    sys.exit(exit_code)


def run(arguments: list[str]) -> ExitCode:
    """Run a command line and return its exit code.

    The exit codes are 0 (done), 1 (failed), 2 (wrong usage), 3 (a bug) and 130 (interrupted).
    """
    if not arguments:
        arguments = ["--help"]
    if COMPLETION_VARIABLE in os.environ:
        # Imported late because only completion needs it.
        from resume_hooks.cli.complete_sessions import register_bash_completion

        register_bash_completion()
    as_json = "--json" in arguments
    verb_index = next(
        (verb_index for verb_index, word in enumerate(arguments) if not word.startswith("-")), 0
    )
    verb_words = VERB_ALIASES.get(arguments[verb_index], arguments[verb_index : verb_index + 1])
    arguments = [*arguments[:verb_index], *verb_words, *arguments[verb_index + 1 :]]
    verb = next((word for word in arguments if not word.startswith("-")), "")
    try:
        result = _run_verb(arguments, find_colour_preference(os.environ))
    except click.exceptions.Abort:
        return Interrupted.exit_code
    except click.ClickException as error:
        return _report_failure(
            verb,
            UsageError(
                error.format_message().replace("No such command", "No such verb"),
                _suggest_help(verb),
            ),
            as_json,
        )
    except OutputFailed as error:
        # At exit Python flushes stdout again. Stdout is redirected to /dev/null, because this flush
        # would fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _report_failure(verb, error, as_json=False)
    except ResumeHooksError as error:
        return _report_failure(verb, error, as_json)
    # click raises SystemExit if the program that reads the pipe has ended, as in ``| head``. This
    # is not a failure.
    except SystemExit:
        return 0
    except KeyboardInterrupt:
        return Interrupted.exit_code
    except Exception as error:  # noqa: BLE001 - the outermost rim: a bug is logged, told, and has its own exit code
        return _report_unexpected_error(verb, error, as_json)
    return result if isinstance(result, int) else 0


def _run_verb(arguments: list[str], wants_colour: bool | None) -> object:
    """Run a verb and return its result.

    If several sessions match the locator, let the user choose one of them and run the verb again.
    """
    try:
        return cli.main(
            arguments,
            prog_name="resume-hooks",
            standalone_mode=False,
            color=wants_colour,
            obj=arguments,
        )
    except AmbiguousLocator as error:
        # Imported late because only an ambiguous locator needs it.
        from resume_hooks.cli.ask_question import choose_candidate_in_command

        chosen_arguments = choose_candidate_in_command(arguments, error)
        if chosen_arguments is None:
            raise
    return _run_verb(chosen_arguments, wants_colour)


def _suggest_help(verb: str) -> str:
    if verb in VERBS:
        return f"resume-hooks {verb} --help"
    import difflib  # Imported late because only an unknown verb needs it.

    matches = difflib.get_close_matches(verb, VERBS, 1)
    if matches:
        return f"Did you mean {matches[0]}? See resume-hooks --help"
    return "resume-hooks --help"


def _report_failure(verb: str, error: ResumeHooksError, as_json: bool) -> ExitCode:
    if isinstance(error, AmbiguousLocator):
        candidates = error.candidates
    else:
        candidates = None
    if as_json:
        document = make_failure_document(verb, error.code, error.message, error.remedy, candidates)
        print_document(document)
        return error.exit_code
    print_text(f"resume-hooks: {error.message}", err=True)
    for candidate in candidates or []:
        if "size" in candidate:
            size_text = f"  {candidate['size']:,} bytes"
        else:
            size_text = ""
        locator = candidate.get("locator", candidate["session_id"])
        print_text(f"  {locator}  {candidate['ended']}{size_text}  {candidate['title']}", err=True)
    if isinstance(error, AmbiguousLocator) and error.count > len(error.candidates):
        print_text(f"  and {error.count - len(error.candidates):,} older ones", err=True)
    if error.remedy:
        print_text(f"  {format_remedy(error.remedy)}", err=True)
    return error.exit_code


def _report_unexpected_error(verb: str, error: Exception, as_json: bool) -> ExitCode:
    """Report an unexpected exception and return its exit code.

    A disk error, such as a full disk, is reported as a failure. Every other exception is reported
    as a bug and written to the bug log.
    """
    if failure := convert_disk_error(error):
        return _report_failure(verb, failure, as_json)
    log_path = bug_log.log_bug(verb if verb in VERBS else "command", __version__, error)
    message = f"A bug: {type(error).__name__}: {error}"
    if log_path:
        remedy = f"No existing session was changed. The trace is in {log_path}."
    else:
        remedy = (
            f"No existing session was changed. The trace could not be written to {bug_log.log_file_path()}: "
            "check the free space and the permissions of the folder."
        )
    if as_json:
        print_document(make_failure_document(verb, "bug", message, remedy))
    else:
        print_text(f"resume-hooks: {message}\n  {remedy}", err=True)
    return BUG_EXIT_CODE
