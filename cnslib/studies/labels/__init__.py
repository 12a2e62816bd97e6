"""The labelled set: who labels, which pictures, and how far two answers agree (notebook 20)."""
