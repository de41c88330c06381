"""`python -m tidemill.cli`: the console script without its installation."""

from . import main

main()
