"""Tables into Axes, and one save for picture and numbers. Nothing is computed here."""
