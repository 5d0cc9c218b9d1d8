"""A Kubernetes cluster brought into the database, and kept equal to it.

`watcher` runs the process. `store` keeps what was heard, `writer` writes the differences. Nobody
else writes what is mirrored.
"""
