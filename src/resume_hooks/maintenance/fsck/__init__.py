"""Find the defects of a session by record: a module for each group, and ``diagnose``, which runs them all."""
