"""The written rules (docs/origins.md, decision 9) programmed a second time, for tests to compare
with.
"""
