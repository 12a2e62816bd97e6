"""ImageNet-C's corruptions of real pictures, garments and photographs, and what they tell beside the shifts (notebook 25)."""
