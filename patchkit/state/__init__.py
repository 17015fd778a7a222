"""What patchkit did to a site, and doing it all or nothing: ledger, blobs, journal, transaction, lock, history."""
