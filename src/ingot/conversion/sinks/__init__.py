"""What a conversion writes to: a module per format, and the table of all of them."""
