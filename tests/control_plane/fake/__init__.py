"""A small API server in Python, for faults that a real one does not give at will.

It answers list, watch, create, change, bind and evict as the real one does. A test
(`tests/control_plane/test_fake.py`) holds the same conversations with both and compares.
"""
