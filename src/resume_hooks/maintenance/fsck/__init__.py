"""Find the defects in the records of a session.

Each module finds one group of defects. ``diagnose`` runs the checks of all groups.
"""
