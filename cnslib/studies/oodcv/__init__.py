"""Drawn weather against real weather (notebook 21)."""
