"""web.py with a wall clock that is off by the seconds in a file, the same in all of its processes.

python shifted_clock.py '{"clock": "file with a float", ...}', else as web.py
"""

import json
import mmap
import runpy
import struct
import sys
import time
from pathlib import Path

with open(json.loads(sys.argv[1])["clock"], "rb") as file:
    shift = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
wall_clock = time.time
time.time = lambda: wall_clock() + struct.unpack("d", shift[:8])[0]
runpy.run_path(str(Path(__file__).with_name("web.py")), run_name="__main__")
