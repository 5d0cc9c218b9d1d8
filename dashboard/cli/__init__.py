"""`vcctl`, the command line.

It speaks the REST API, and knows neither Django nor the scheduler: light, and at home anywhere.
"""

VERSION = "0.1.0"
