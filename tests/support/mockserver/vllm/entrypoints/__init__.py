"""Stands in for the real one."""
