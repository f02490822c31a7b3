"""Write a planned child to disk. Four modules share the work: draft, body, writer and receipt.

``draft`` chooses the child's id, folder and lineage. A ``ChildPlan`` combines the draft with the
sizes and with a ``ChildBody``, which makes the child's lines and checks them. ``ChainRewrite`` is the
``ChildBody`` that copies the records of the parent. None of these values changes the disk.

Only ``write_child`` changes the disk. It chooses the title under a lock, writes the tool outputs
and file backups, reads the child back and checks it, and links the file to its name. It returns a
``Receipt``.
"""
