"""`python -m countervail`, where the command itself is not on the path."""

from countervail.cli import main

main()
