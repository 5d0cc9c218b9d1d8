"""Objects from outside, read into values: every mistake is named, nothing is passed over."""
