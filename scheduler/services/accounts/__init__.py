"""Accounts: who asks, what they may do, their tokens and preferences."""
