"""Find and name sessions: project folders, locators, references, lineage and archived copies.

This package may import only system, storage, transcripts and the base modules, which import no other
package. It must not render text, make children, or change an archive.
"""
