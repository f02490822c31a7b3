"""Tests of the smart trim."""
