"""The real client and ``resume_hooks.parts.subagents``, offline."""
