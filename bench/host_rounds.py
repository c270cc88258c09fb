"""What a host adds: to a call, and to the lists of its servers."""

import probes
from peers import Contestant
from rounds import Rounds


class Hosts(Rounds):
    def run(self) -> None:
        wanted = self._wanted & {"host", "merge"}
        for number in range(self._plan.host_rounds if wanted else 0):
            self._tell(f"host round {number + 1}")
            for contestant in self._in_python():
                for name in sorted(wanted) if contestant.is_ours else ():
                    self._attempt_one(name, contestant, lambda c=contestant, n=name, r=number: self._take(n, c, r))

    def _take(self, name: str, contestant: Contestant, number: int) -> None:
        if name == "host":
            ratio = probes.host_ratio(contestant, self._plan.host_seconds)
        else:
            ratio = probes.merge_ratio(contestant, self._plan.merges)
        self._keep(name, contestant, number, ratio)
