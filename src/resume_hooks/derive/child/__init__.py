"""Write a planned child to disk.

The module ``draft`` chooses the child's id, folder and lineage. A ``ChildPlan`` combines the draft
with the sizes and with a ``ChildBody``, which makes the child's lines and checks them.
``ChainRewrite`` is the ``ChildBody`` that copies the records of the parent. None of these objects
changes anything on disk.

Only ``write_child`` writes to disk. It chooses the title under a lock, writes the tool outputs and
file backups, reads the child back and checks it, and links the file to its final name. It returns a
``Receipt``.
"""
