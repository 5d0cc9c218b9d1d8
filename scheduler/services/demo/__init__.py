"""A first start: what an installation begins with, the sample cluster and its load."""
