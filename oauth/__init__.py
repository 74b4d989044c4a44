"""OAuth, for clients that take no pasted key: a person lends such a client the rights of one access key."""
