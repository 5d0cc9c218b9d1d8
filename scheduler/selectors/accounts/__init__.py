"""Questions about accounts: what somebody may do, and what they prefer."""
