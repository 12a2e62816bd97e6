"""Shifts in latent space: data sets, their strength, EDM's checkpoints as decoder, and what they do to classifiers (notebook 30)."""
