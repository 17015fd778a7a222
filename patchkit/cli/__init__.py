"""The command line: options, rendering, exit statuses; no logic."""
