"""Commands of `manage.py` that read and write as the API and `vcctl` do."""
