"""One room, or one folder, for each further notebook, under its name."""
