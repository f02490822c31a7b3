"""Find and name sessions: project folders, locators, references, lineage and archived copies.

May import the ground, system, storage and transcripts. Must not render, make children, or change an
archive.
"""
