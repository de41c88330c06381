"""Changes of columns and values between decoding and a sink."""
