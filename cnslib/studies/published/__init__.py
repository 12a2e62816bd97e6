"""What the published tables imply, and the discrepancy ledger (notebook 13)."""
