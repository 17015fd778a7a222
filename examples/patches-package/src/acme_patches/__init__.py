"""Holds a folder of patch files; nothing imports it."""
