"""The ways on from a session beside each other: what a reader of labels finds in context, one read away, or not at all.

After ``make setup``: ``.venv/bin/python -m benchmarks.going_on [all | tune final unseen sample] [--missed]``, on
labelled sessions: of the corpus, which lies where ``RESUME_HOOKS_CORPUS`` says or in ``../shared/corpus``, or
``sample``, which we wrote and which may be given away.
``--own [COUNT]`` on the latest of this home (20), without what needs labels.
``--missed`` lists what a handoff loses. ``python -m benchmarks.going_on.bounds`` says how far another choice of
decisions could go.

To add a way, in ``ways.py``:

- One that makes a file: a line in ``ways``. It has the row's name; what makes a child of the path of a copy and tells
  its path, another file of the same folder; what says of that path what is ``Left``. That is ``cut`` for a shortened
  copy: items are found word for word, and one read away by the keys of our trim; a program that refers in words needs
  its pattern, as ``referring`` has the peer's. It is ``fresh`` for a new session, found by its lines, too. The copy is
  in a home of its own, which ``HOME`` and ``CLAUDE_CONFIG_DIR`` name; the child is deleted once it was looked at. None,
  where nothing was made, counts as the session as it is; an error ends the run. A program that not everybody has goes
  behind a variable, as ``BENCH_PEER``.
- One that is a text: a line in ``naive``; 900 tokens are ``as_text.OPENING`` characters. It is found as it stands, or
  by its lines, a file by its name.
- One that a model writes: a name in ``MODEL``. The texts are in the folder that ``BENCH_SUMMARIES`` names, as
  ``<name>/<file of the session, without .jsonl>.md``; without any its row is empty.

Calls before the first edit are those of children that lie among the sessions, if the row is called as ``stats`` calls
them; where it is not, ``measure.BEGINS`` has their name.

To add sessions: ``truth_<half>_<reader>.jsonl`` beside this, of a half in ``truth.HALVES``, with a line an item: its
``session`` (a path below the corpus, without .jsonl), ``kind`` (``truth.KINDS``), ``record`` (the line, from 0),
``block`` (of its content, from 0), the ``start`` and ``end`` of its characters there (of a call, in its command or
path), and ``in_summary``: whether a later compaction summary has it, null where there is none.
"""
