"""Writing patches: from bytes before and after to a patch file, and from a patch to a unified diff."""
