"""Pictures and answers, ours and others': catalog, ImageNet, published tables, archives, annotations."""
