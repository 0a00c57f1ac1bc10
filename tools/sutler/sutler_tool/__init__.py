# SPDX-License-Identifier: MIT
"""The `sutler` command: try, compare and measure memory allocators on real programs.

Modules, from the ground up: paths, packages (what must be there), launcher and measure (one run), stats (what runs
say), libraries and peers (what can be preloaded), then one module a verb: demo, testrun, compare, bench, report,
profile, doctor.  cli.py only parses.
"""

__version__ = "0.1.0"
