"""The ways on from a session beside each other: what a reader of labels finds in context, one read away, or not at all.

After ``make setup``: ``.venv/bin/python -m benchmarks.going_on [tune final unseen sealed sample]
[--missed]``, on labelled sessions: of the corpus, which lies where ``RESUME_HOOKS_CORPUS`` says or
in ``../shared/corpus``, or ``sample``, which we wrote and which may be given away. Without words
two runs: the halves that rules were made on, and the sealed one. Each prints what is left of all
items, and what of those that a compaction summed up. ``--own [COUNT]`` tells the tokens alone, of
the latest sessions of this home (20). ``--missed`` lists what a handoff of the usual size does not
hold. ``python -m benchmarks.going_on.generations`` counts planted facts after five handoffs.

To add a way, in ``ways.py``:

- One that makes a file: a line in ``cuts``. It has the row's name, and what makes a child of the path of a copy and
  tells its path, another file of the same folder. Items are found word for word, and one read away by the keys of our
  trim; a program that refers in words needs its pattern, as ``referring`` has the peer's. The copy is in a home of its
  own, which ``HOME`` and ``CLAUDE_CONFIG_DIR`` name; the child is deleted once it was looked at. None, where nothing
  was made, counts as the session as it is; an error ends the run. A program that not everybody has goes behind a
  variable, as ``BENCH_PEER``.
- One that is a text: a line in ``whole_session``. It is found as it stands, or by its lines, a file by its name.
- One that a model writes: a name in ``MODEL``. The texts are in the folder that ``BENCH_SUMMARIES`` names, as
  ``<name>/<file of the session, without .jsonl>.md``; without any its row is empty.

To add sessions: ``truth_<half>_<reader>.jsonl`` beside this, of a half in ``truth.HALVES``, with a
line an item: its ``session`` (a path below the corpus, without .jsonl), ``kind`` (``truth.KINDS``),
``record`` (the line, from 0), ``block`` (of its content, from 0), the ``start`` and ``end`` of its
characters there (of a call, in its command or path), and ``in_summary``: whether a later compaction
summary has it, null where there is none.
"""
