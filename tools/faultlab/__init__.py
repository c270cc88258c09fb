"""Experiments that break things on purpose, each bounded, seeded and ended by itself. `tools/faults.py` runs them.

lab.py         what an experiment is given, and the rows it gives back
processes.py   what the kernel says about processes, and how ours are ended
frames.py      requests as prepared bytes
pipe.py        a server process spoken to with plain bytes, by one thread
web.py         a server process over HTTP, and connections to it made of bytes
mutate.py      bytes that are almost frames
tap.py         a channel that writes down what passes, and a raw asyncio client
hostility.py   servers that misbehave, as pure scripts; hostile_peers.py plays them on every carrier
visiting.py    a client of ours at one of them
accounts.py    what a process holds before and after, and what it does when idle
ledger.py      which calls ran how often, against what was promised
experiments/   one file per experiment
servers/       what the experiments start: servers of ours, foreign ones, a host
report.py      the table, for the terminal and for docs/faults.md
"""
