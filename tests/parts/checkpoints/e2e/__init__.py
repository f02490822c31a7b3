"""The real client and ``resume_hooks.parts.checkpoints``, offline."""
