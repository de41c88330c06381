"""Bodies of requests and responses of the HTTP API, which the client uses too."""
