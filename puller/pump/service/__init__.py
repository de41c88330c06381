"""The port of a drainer: notifications of pumps, status, commands and metrics."""
