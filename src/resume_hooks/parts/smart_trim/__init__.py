"""Smart trim: rules give up what is certain, a model judges the rest; written by trim's writer."""
