"""The mini world: rendered garments, shifts of known severity, and the trainings of its base models."""
