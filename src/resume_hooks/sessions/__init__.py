"""Which sessions there are and how to name one: project folders, locators, references, lineage, archived copies.

May import the ground, system, storage and transcripts. Must not render, make children, or change an
archive.
"""
