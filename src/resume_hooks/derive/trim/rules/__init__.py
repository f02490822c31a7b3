"""The rules of a trim, one module a kind of content; in order of what is missed least."""
