"""Measure ways to continue a session: how many labelled items are in context after each way.

Other items may be one read away or out of reach.

``.venv/bin/python -m benchmarks.going_on [tune final unseen sealed sample] [--missed]`` (after
``make setup``) measures the sessions of these sets of labels. The sessions are in the corpus, in
``RESUME_HOOKS_CORPUS`` or ``../shared/corpus``. The sessions of ``sample`` are our own and may be
published. Without arguments there are two runs: for the sets that we used to make rules, and for
the sealed set. Each run prints two tables: for all items, and for the items before a compaction.
``--own [COUNT]`` prints only the tokens, for the latest sessions of this home (default: 20).
``--missed`` prints the items that a handoff of the usual size does not contain. ``python -m
benchmarks.going_on.generations`` counts planted facts after five handoffs.

To add a way, in ``ways.py``:

- For a way that makes a file, ``list_copy_methods`` yields its name and a function. The function gets
  the path of a copy of the session, makes a child in the same folder, and returns the child's path.
  The copy is in a temporary home, to which ``HOME`` and ``CLAUDE_CONFIG_DIR`` point. The child is
  deleted after it was measured. If the function returns None, the session itself is measured. An
  error ends the run. Items are searched verbatim in the child. Items that are one read away are
  found by the keys that our trim writes. If another program refers to records in words, a pattern
  must find these words, as in ``resolve_peer_references``. If a program may be missing, a variable
  such as ``BENCH_PEER`` contains its path.
- For a way that makes a text, ``run_ways_on_session`` yields a result. Items are searched verbatim in
  the text, and then in each line. A file is also found by its name.
- A way whose text a model writes is a name in ``MODEL_WAYS``. The texts are in the folder
  ``BENCH_SUMMARIES``, in ``<name>/<file of the session, without .jsonl>.md``; without them the row
  is empty.

To add sessions, write ``truth_<set>_<reader>.jsonl`` beside this file, with a set from
``truth.LABEL_SETS`` and a line per item: its ``session`` (a path below the corpus, without .jsonl),
``kind`` (``truth.ITEM_KINDS``), ``record`` (the line, counted from 0), ``block`` (its position in the
record's content), the ``start`` and ``end`` of its characters there (of a call, in its command or
path), and ``in_summary``: whether the summary of a later compaction contains it, or null if there
is none.
"""
