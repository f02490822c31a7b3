"""The one way to make a child: a draft, its lines and checks, one writer, a receipt.

``draft`` decides on id, folder and lineage, ``ChildPlan`` adds lines, checks and sizes; a ``RewritePlan`` takes its
parent's records over by a ``ChainRewrite``. Both are values and touch nothing. ``write`` alone puts a child on disk: it
chooses the title under a lock, puts the sidecars beside it, checks all as read back, and links it to its parent.
"""
