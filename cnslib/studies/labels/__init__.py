"""The labelled set: who labels, which pictures, how far two answers agree, and what the labels make of the filter (notebook 20)."""
