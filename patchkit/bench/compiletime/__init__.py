"""Compile time: lowering, compiling and the first run, timed apart, each trial in a process of its own."""
