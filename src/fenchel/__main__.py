"""`python -m fenchel` is the command `fenchel`."""

from .cli import main

main()
