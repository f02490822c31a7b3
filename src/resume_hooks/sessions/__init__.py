"""Find and name sessions: project folders, locators, references, lineage and archived copies.

This package may import only the packages below it: the ground, system, storage and transcripts. It
must not render text, make children, or change an archive.
"""
