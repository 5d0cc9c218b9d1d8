"""Who used what: booked by the worker from what pods held."""
