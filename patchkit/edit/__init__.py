"""Text and syntax matching, scopes, planning: pure, bytes in and bytes out."""
