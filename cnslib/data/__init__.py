"""Pictures and predictions, ours and others': catalog, ImageNet, published tables, archives, annotations."""
