"""Turning the slider by hand, and the reader's own failure point (notebooks 07 and 09): state, pictures, views, and widgets over them."""
