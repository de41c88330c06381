"""`tidemill run --engine spark`."""
