"""The life of a batch job: what its pods, its policies and its owner's commands make of it.

Pure: facts in, the next step out.
"""
