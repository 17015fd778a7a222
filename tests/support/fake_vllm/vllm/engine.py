"""The switches; see ``vllm/__init__.py``."""

OFF_THE_MENU = False
COMPILE = ""
WORD = "stock"
SHORT = 0
ABORT = False
SLOW = 1.0
SLOW_TTFT = 1.0
STEPS = "1"
CRASH = False
RAISE = False
HANG = False
PROFILER = False
VERSION = "0.24.0"
HITS = 0.0
ACCEPTED = 0.0
MEMORY = "4.67"
PROCESS = ""
