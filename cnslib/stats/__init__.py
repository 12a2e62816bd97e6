"""Tables in, tables out: every number with its n and interval. No torch, no figure."""
