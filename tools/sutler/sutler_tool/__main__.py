# SPDX-License-Identifier: MIT
"""`python -m sutler_tool` is the same program as `sutler`."""

from .cli import main

main()
