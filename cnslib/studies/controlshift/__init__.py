"""Shifts in latent space: data sets, their intensity, EDM's checkpoints as decoder (notebook 30)."""
