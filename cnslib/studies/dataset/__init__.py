"""The benchmark as a published data set: its Croissant metadata and its datasheet, both from its tables (notebook 15)."""
