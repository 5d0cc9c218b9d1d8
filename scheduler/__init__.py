"""The scheduler: engine, rules, tables, services and clusters. Knows nothing of the web."""

VERSION = "0.4.0.dev0"
"""As in pyproject.toml. The releases are in CHANGELOG.md."""
