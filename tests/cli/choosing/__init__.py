"""Tests of the chooser, part by part."""
