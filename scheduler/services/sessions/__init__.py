"""Scheduling sessions: the claim, the run, the outcome written back, and the policy they follow."""
