"""`python -m calamint`: the command line."""

import os
import sys

# `python -m` puts the working directory first, where anybody may have left a module.
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from calamint.show import main

main()
