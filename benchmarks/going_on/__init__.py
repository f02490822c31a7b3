"""The ways on from a session beside each other: what a reader of labels finds in context, one read away, or not at all.

``python -m benchmarks.going_on [all | tune final unseen sample] [--missed]`` on labelled sessions (``sample`` is one of
ours, to give away), ``--own [COUNT]`` on the latest of this home, for the columns that need no labels.

To add a way: in ``ways.ways`` a name, what makes its child of a copy of the session (None where none is made), and what
is ``Left`` there. One that needs a model: a name in ``ways.MODEL``, and in the folder that ``BENCH_SUMMARIES`` names a
text a session, ``<name>/<session id>.md``. To add sessions: a ``truth_*.jsonl`` beside this, as ``truth`` reads it.
"""
