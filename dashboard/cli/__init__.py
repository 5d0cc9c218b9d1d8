"""`vcctl`, the command line.

It speaks the REST API, and knows neither Django nor the scheduler: light, and at home anywhere.
"""

VERSION = "0.4.0.dev0"
