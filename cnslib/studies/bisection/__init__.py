"""Failure points between the scales of the grid (notebook 10)."""
