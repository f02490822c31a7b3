"""Finding and naming sessions: project folders, locators, references, lineage, archived copies.

May import the ground, system, storage and transcripts. Must not render, make children, or change an
archive.
"""
