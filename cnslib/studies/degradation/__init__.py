"""Classifiers trained on one distribution and asked about shifted ones (notebook 31)."""
