"""The utilities server with room for small messages only; run it as a program."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from interlock.wire.limits import Limits
from support.servers.utilities import server

LIMITS = Limits(message_bytes=4096)

if __name__ == "__main__":
    server.run(limits=LIMITS)
