"""The one way to make a child: a draft, its lines and checks, one writer, a receipt.

``draft`` decides on id, folder and lineage, ``ChildPlan`` adds sizes and a ``Body``, the lines and
checks of a form: a ``ChainRewrite`` takes the parent's records over. All are values and touch
nothing. ``write`` alone puts a child on disk: it chooses the title under a lock, puts the sidecars
beside it, checks all as read back, and links it.
"""
