"""What the measures of every kind have in common: who takes part, and what is done when one of them fails."""

from collections.abc import Callable

import probes
from driver import DriverError
from messages import WrongAnswer
from peers import Contestant, plain_reason
from plans import Plan
from samples import Key, Samples

SERVER_SECONDS = 60.0  # that a server process lives at most
ROUND_SECONDS = 240.0  # or one that lives through a round, with all others
_ENOUGH_FAILURES = 2  # a contestant that failed so often in a row is left out of the rest


class Rounds:
    """Takes the wanted measures of the present contestants into `samples`."""

    def __init__(self, contestants: list[Contestant], wanted: set[str], plan: Plan, samples: Samples) -> None:
        self._contestants = contestants
        self._wanted = wanted
        self._plan = plan
        self._failed_in_a_row: dict[tuple[str, str, str], int] = {}
        self.samples = samples

    def _in_python(self) -> list[Contestant]:
        return [contestant for contestant in self._contestants if contestant.in_python is not None]

    def _keep(self, measure: str, contestant: Contestant, number: int, value: float) -> None:
        self.samples.add(Key(measure, contestant.name, ""), number, value)

    def _attempt_one(self, measure: str, contestant: Contestant, take: Callable[[], None]) -> None:
        self._attempt((measure, contestant.name, ""), [Key(measure, contestant.name, "")], take)

    def _attempt(self, who: tuple[str, str, str], keys: list[Key], take: Callable[[], None]) -> bool:
        """A contestant that fails is reported and does not stop the others."""
        if self._failed_in_a_row.get(who, 0) >= _ENOUGH_FAILURES:
            return False
        try:
            take()
        except (DriverError, WrongAnswer, probes.ProbeFailed, ValueError, OSError) as error:
            self._failed_in_a_row[who] = self._failed_in_a_row.get(who, 0) + 1
            for key in keys:
                self.samples.fail(key, plain_reason(str(error)))
            self._tell(f"{' '.join(who)}: failed: {plain_reason(str(error))}")
            return False
        self._failed_in_a_row[who] = 0
        return True

    def _tell(self, text: str) -> None:
        print(f"[{self._plan.name}] {text}", flush=True)
