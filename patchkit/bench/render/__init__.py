"""Reports as people and other tools read them; pure: a report in, text or JSON values out."""
