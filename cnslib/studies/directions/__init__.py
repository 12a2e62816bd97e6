"""Shifts by text beside those by sliders (notebook 22)."""
