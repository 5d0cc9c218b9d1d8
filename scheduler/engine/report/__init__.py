"""What a session says: its outcome, reasons, conditions and figures."""
