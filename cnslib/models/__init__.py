"""Everything that has weights and is loaded: text-to-image model, adapters, encoders, classifiers."""
