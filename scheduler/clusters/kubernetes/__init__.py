"""A real Kubernetes cluster, over its API server. Knows no Django."""
