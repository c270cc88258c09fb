"""examples/everything.py as a server under test: a fresh one for everybody who imports this afresh."""

import importlib.util
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "everything.py"

sys.modules.pop("everything_more", None)  # the part that it mounts, as fresh as itself
if str(EXAMPLE.parent) not in sys.path:
    sys.path.append(str(EXAMPLE.parent))
spec = importlib.util.spec_from_file_location("everything_example", EXAMPLE)
assert spec is not None and spec.loader is not None
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
server = module.server
