"""The real client and ``resume_hooks.parts.rewind_files``, offline."""
