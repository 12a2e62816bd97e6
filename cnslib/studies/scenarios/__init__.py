"""Objects and backgrounds changed apart: EX1 and EX2 of XIMAGENET-12 (notebook 40)."""
