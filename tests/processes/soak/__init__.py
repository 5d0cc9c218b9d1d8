"""The whole stack under mixed load, with random faults and a checker all the while."""
