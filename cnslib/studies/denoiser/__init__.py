"""The text-to-image model as a classifier (notebook 27)."""
