"""Tests of bundles: what one holds, what becomes of it elsewhere, and what is refused."""
