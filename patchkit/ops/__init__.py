"""The verbs, as functions: apply, revert, check, sync, and looking without touching."""
