"""Shifts by text beside those by sliders, and two sliders in one picture (notebook 22)."""
