"""The out-of-class filter put to the test on the labelled set (notebook 23)."""
