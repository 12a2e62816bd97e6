"""How many classes and steps the benchmark needs (notebook 24)."""
