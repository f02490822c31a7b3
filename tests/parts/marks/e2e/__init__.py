"""The real client and ``resume_hooks.parts.marks``, offline."""
