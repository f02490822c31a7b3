"""Tests of the index: what is found, what is not, and that nothing that happens to files or disks can spoil it."""
