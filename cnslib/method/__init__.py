"""The five steps of CNS-Bench: inversion, sliders, generation, filtering, evaluation."""
