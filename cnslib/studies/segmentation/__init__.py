"""Small segmentation networks, and where classifiers look (notebook 41)."""
