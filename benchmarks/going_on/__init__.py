"""Measure ways to continue a session: how many labelled items are in context after each way.

Other items may be one read away or out of reach.

``.venv/bin/python -m benchmarks.going_on [tune final unseen sealed sample] [--missed]`` (after
``make setup``) measures sessions with labels. They are in the corpus, in ``RESUME_HOOKS_CORPUS`` or
``../shared/corpus``. The sessions of ``sample`` are our own and may be published. Without arguments
there are two runs: for the halves on which rules were made, and for the sealed half. Each run
prints two tables: for all items, and for the items before a compaction. ``--own [COUNT]`` prints
only the tokens, for the latest sessions of this home (default: 20). ``--missed`` prints the items
that a handoff of the usual size does not contain. ``python -m benchmarks.going_on.generations``
counts planted facts after five handoffs.

To add a way, in ``ways.py``:

- A way that makes a file is a row in ``list_copy_methods``: its name, and a function that makes a child
  from the path of a copy and returns the child's path, another file in the same folder. Items are
  searched verbatim; those that are one read away are found by the keys of our trim. A program with
  references in words needs its pattern, as in ``resolve_peer_references`` for the peer. The copy is
  in a home of its own, which ``HOME`` and ``CLAUDE_CONFIG_DIR`` name, and the child is deleted
  after it was measured. If the function returns None, the session itself is measured; an error ends
  the run. A program that may be missing is named by a variable, such as ``BENCH_PEER``.
- A way that makes a text is a row in ``run_ways_on_session``. Its text is searched verbatim and line by
  line, files by name.
- A way whose text a model writes is a name in ``MODEL_WAYS``. The texts are in the folder
  ``BENCH_SUMMARIES``, in ``<name>/<file of the session, without .jsonl>.md``; without them the row
  is empty.

To add sessions, write ``truth_<half>_<reader>.jsonl`` beside this file, with a half from
``truth.HALVES`` and a line per item: its ``session`` (a path below the corpus, without .jsonl),
``kind`` (``truth.KINDS``), ``record`` (the line, counted from 0), ``block`` (its position in the
record's content), the ``start`` and ``end`` of its characters there (of a call, in its command or
path), and ``in_summary``: whether the summary of a later compaction contains it, or null if there
is none.
"""
