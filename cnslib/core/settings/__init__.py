"""The parameter file as frozen, checked sections, one per step."""
