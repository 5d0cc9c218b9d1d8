"""What every endpoint of the API is made of: requests, rights, versions, lists, answers."""
