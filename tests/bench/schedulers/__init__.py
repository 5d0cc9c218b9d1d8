"""Fumarole beside Volcano's scheduler and kube-scheduler: the same cluster, the same load."""
