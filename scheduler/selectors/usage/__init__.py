"""Who used what: read from the rows that the worker has booked."""
