"""Everything around a request: how it is taken, who asks, what every answer carries."""
