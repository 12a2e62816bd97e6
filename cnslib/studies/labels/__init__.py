"""The labelled set, and the out-of-class filter put to the test on it (notebook 20)."""
