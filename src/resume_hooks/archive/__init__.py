"""Keep copies that outlive the client's own cleanup: the vault, the trash, and copies of edited files.

This package may import ``reading``, ``sessions`` and the packages that they import. It must not
make children or search.
"""
