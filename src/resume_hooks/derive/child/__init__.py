"""The path from a plan to a child: a draft, its lines and checks, one writer, a receipt.

``draft`` chooses the id, the folder and the lineage. ``ChildPlan`` adds the sizes and a ``Body``,
which has the lines and the checks. A ``ChainRewrite`` is a body with the parent's records. All
these are values and write nothing. Only ``write`` changes the disk: it chooses the title under a
lock, writes the sidecars, reads the child back and checks it, and links the file to its name.
"""
