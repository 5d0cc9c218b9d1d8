"""Loaded by pytest before Django's settings are: the environment that the tests run in."""

import os

os.environ.setdefault("SECRET_KEY", "tests-only-" + "x" * 50)
os.environ.setdefault("ALLOWED_HOSTS", "testserver,localhost,127.0.0.1")
os.environ.setdefault("SECURE_COOKIES", "0")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
