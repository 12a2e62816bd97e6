"""What every wing stands on: folders, names, parameters, checked tables, units of work, seeds and processes."""
