"""Captions of the notebooks' figures, and sentences that say what a figure shows, with the numbers of its table."""
