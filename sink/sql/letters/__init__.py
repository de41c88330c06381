"""Changes that a SQL target rejected, kept beside its checkpoint until somebody decides about them."""
