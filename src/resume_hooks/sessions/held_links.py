"""Find and remove our hard links to sessions, which ``archive/link_sessions`` creates."""

from __future__ import annotations

import os
from collections.abc import Iterator

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, is_private_folder
from resume_hooks.storage import removal

LINKS_FOLDER = "held"


def links_folder(where: Where) -> str:
    """Return the folder of the hard links. The folder exists only if there are links."""
    return os.path.join(where.state, LINKS_FOLDER)


def links_without_client_file(where: Where) -> Iterator[str]:
    """Yield the path of each hard link whose client's file was deleted or replaced.

    The paths of the links in one folder are yielded in sorted order.
    """
    links_root = links_folder(where)
    for root, _, names in os.walk(links_root) if is_private_folder(links_root, where) else ():
        client_folder = os.path.join(where.projects, os.path.relpath(root, links_root))
        for name in sorted(names):
            if not is_same_file(os.path.join(client_folder, name), os.path.join(root, name)):
                yield os.path.join(root, name)


def is_same_file(path: str, other_path: str) -> bool:
    """Check whether two paths lead to the same file."""
    try:
        return os.path.samestat(os.lstat(path), os.lstat(other_path))
    except OSError:
        return False


def remove_links(path: str, where: Where) -> None:
    """Remove the hard link that we made to the client's file at ``path``.

    If ``path`` is a session's folder, remove all links for the session. Raise WriteFailed if a link
    can't be removed.
    """
    if not path.startswith(os.path.join(where.projects, "")):
        return
    link = os.path.join(links_folder(where), os.path.relpath(path, where.projects))
    try:
        if os.path.isdir(path) and is_private_folder(link, where):
            removal.remove_permanently(link, where.state)
        elif os.path.samestat(os.lstat(path), os.lstat(link)):
            removal.remove_file(link, where.state)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise WriteFailed(
            f"{link} could not be removed: {error.strerror or error}",
            "Nothing was changed. Check its permissions.",
        ) from error
