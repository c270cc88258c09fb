"""Becomes another program, on a core of its own: on_core.py <core> <program> <words>...

For servers that a measured client starts by itself: they run on the server's core, as all others do.
"""

import os
import sys

os.sched_setaffinity(0, {int(sys.argv[1])})
os.execv(sys.argv[2], sys.argv[2:])
