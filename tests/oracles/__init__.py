"""The specification once more, read from the text and not from the code: what tests compare the product with."""
