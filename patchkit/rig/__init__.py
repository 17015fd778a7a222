"""The rig: an environment with the real TPU engine on a CPU, made by patchkit's own patches."""
