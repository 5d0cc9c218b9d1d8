"""Stored objects as files, and admission asked about objects from outside."""
