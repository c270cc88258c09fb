"""`make conformance`: the official suite against our server and client.

The suite drives servers and clients over HTTP only, and this version has no HTTP carrier: there is nothing it could
talk to. Until there is, this says so and fails, so that nobody takes silence for success.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    print("conformance: 0 scenarios run. The official suite speaks HTTP, this version of Interlock stdio and memory.")
    print("What stands in for it: make coverage-spec (requirements tied to tests) and tests/transcripts.")
    sys.exit(1)
