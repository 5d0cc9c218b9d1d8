"""The parts that every endpoint of the API shares."""
