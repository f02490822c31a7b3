"""Record what every entry point of a checkout does with many sessions, with frozen clock and ids, to compare it."""
