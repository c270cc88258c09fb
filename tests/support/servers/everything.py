"""examples/everything.py as a server under test: a fresh one for everybody who imports this afresh."""

import importlib.util
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "everything.py"

spec = importlib.util.spec_from_file_location("everything_example", EXAMPLE)
assert spec is not None and spec.loader is not None
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
server = module.server
