"""How long and how often a run measures: everything, or a short look."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """How long and how often. Rounds of one measure are spread over the run, not taken in a row."""

    name: str
    stdio_rounds: int
    cold_rounds: int
    warm_up_block_seconds: float
    pipelined_seconds: float
    sequential_seconds: float
    memory_rounds: int
    memory_calls: int
    import_rounds: int
    in_memory_rounds: int
    in_memory_seconds: float
    kills: int
    http_rounds: int
    session_rounds: int
    windows: int
    window_seconds: float
    paced_rounds: int
    paced_windows: int
    paced_seconds: float
    reach_seconds: float
    progress_rounds: int
    progress_seconds: float
    held: int
    client_rounds: int
    client_seconds: float
    asking_rounds: int
    asking_seconds: float
    author_rounds: int
    list_calls: int
    host_rounds: int
    host_seconds: float
    merges: int


FULL = Plan(
    name="full",
    stdio_rounds=5,
    cold_rounds=9,
    warm_up_block_seconds=0.25,
    pipelined_seconds=0.25,
    sequential_seconds=0.15,
    memory_rounds=2,
    memory_calls=10_000,
    import_rounds=9,
    in_memory_rounds=5,
    in_memory_seconds=1.0,
    kills=20,
    http_rounds=3,
    session_rounds=3,
    windows=7,
    window_seconds=0.3,
    paced_rounds=5,
    paced_windows=25,
    paced_seconds=0.4,
    reach_seconds=0.1,
    progress_rounds=3,
    progress_seconds=0.8,
    held=5_000,
    client_rounds=5,
    client_seconds=0.8,
    asking_rounds=5,
    asking_seconds=0.8,
    author_rounds=5,
    list_calls=200,
    host_rounds=5,
    host_seconds=2.0,
    merges=20,
)

QUICK = Plan(
    name="quick",
    stdio_rounds=2,
    cold_rounds=2,
    warm_up_block_seconds=0.12,
    pipelined_seconds=0.15,
    sequential_seconds=0.1,
    memory_rounds=1,
    memory_calls=1_000,
    import_rounds=2,
    in_memory_rounds=2,
    in_memory_seconds=0.3,
    kills=3,
    http_rounds=2,
    session_rounds=2,
    windows=3,
    window_seconds=0.25,
    paced_rounds=2,
    paced_windows=5,
    paced_seconds=0.2,
    reach_seconds=0.1,
    progress_rounds=2,
    progress_seconds=0.3,
    held=5_000,
    client_rounds=2,
    client_seconds=0.3,
    asking_rounds=2,
    asking_seconds=0.4,
    author_rounds=2,
    list_calls=50,
    host_rounds=2,
    host_seconds=0.6,
    merges=5,
)
