"""Sessions of which the vault's copy alone is left: found, read and gone on from as before."""
