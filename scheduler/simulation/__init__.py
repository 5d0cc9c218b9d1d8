"""The engine run forward in simulated time, by events: jobs arrive, pods start, end, are evicted
and come back.
"""
