"""`python -m calamint`: the command line."""

from calamint.show import main

main()
