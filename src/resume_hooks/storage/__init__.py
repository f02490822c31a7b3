"""Write files atomically, lock files, back them up, move them, and store imports temporarily.

This package works on bytes and paths. It may import only the base modules, which import no other
package. It must not know what a transcript is.
"""
