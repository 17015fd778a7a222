"""Target environments: interpreters, site directories, distributions, RECORD, released wheels."""
