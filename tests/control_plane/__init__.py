"""A real Kubernetes control plane for tests: built from pinned sources, started on free ports.

`make control-plane` builds the programs. A test asks for the fixture `control_plane`. By hand:
`python -m tests.control_plane` starts one and prints its KUBECONFIG.
"""
