"""`python -m dashboard.cli` is `vcctl`."""

from dashboard.cli.main import main

main()
