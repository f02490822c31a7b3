"""The verbs that make a child, a file each, in the order of events; every door calls the same function."""
