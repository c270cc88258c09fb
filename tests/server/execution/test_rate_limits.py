"""server/execution/rate_limits.py: buckets without a clock, and who is refused in which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.server.execution.rate_limits import HTTP_LIMITS, Buckets, Rate, RateLimits, caller_key, rate_limited
from interlock.state.rate_table import RateTable
from interlock.wire.errors import InternalError, LocalError
from interlock.wire.exchange import ANONYMOUS, LOCAL, Peer, Principal
from support.doubles import Spoken
from support.properties import many

ADA, BOB = Principal("https://issuer", "ada"), Principal("https://issuer", "bob")


class From:
    """An outlet that knows where its client is."""

    def __init__(self, address):
        self.address = address


class Request(Spoken):
    """A request of somebody."""

    def __init__(self, method="tools/call", principal=ADA, outlet=None):
        super().__init__(method, {}, Peer(principal=principal))
        self.outlet = outlet


async def handler(exchange):
    return {"done": exchange.method}


class Limited:
    """A handler behind limits, and its clock."""

    def __init__(self, limits, **options):
        self.now = 100.0
        self._handler = rate_limited(handler, limits, lambda: self.now, **{"local": False, **options})

    async def __call__(self, *facts, **more):
        return await self._handler(Request(*facts, **more))


# --- buckets ---


def test_a_burst_passes_then_so_many_a_second():
    buckets = Buckets(Rate(2, 5), 10)
    assert [buckets.take("a", 0.0) for _ in range(5)] == [0.0] * 5
    assert buckets.take("a", 0.0) == pytest.approx(0.5)
    assert buckets.take("a", 0.25) == pytest.approx(0.25)
    assert buckets.take("a", 0.5) == 0.0
    assert buckets.take("a", 100.0) == 0.0
    assert sum(buckets.take("a", 100.0) == 0.0 for _ in range(20)) == 4  # a long rest gives no more than a burst


def test_one_of_several_who_count_allows_its_part():
    buckets = Buckets(Rate(2, 6), 10)
    buckets.spread(2)
    buckets.spread(2)  # what is said again is the same
    assert [buckets.take("a", 0.0) for _ in range(3)] == [0.0] * 3
    assert buckets.take("a", 0.0) == pytest.approx(1.0)
    buckets.spread(100)
    assert buckets.take("b", 0.0) == 0.0, "one at least"
    buckets.spread(1)
    assert buckets.take("b", 0.5) == 0.0


@given(st.lists(st.floats(0, 5), max_size=200), st.floats(0.1, 50), st.integers(1, 20))
@many(100)
def test_nobody_gets_more_than_the_burst_and_the_rate(steps, per_second, burst):
    buckets, now, passed = Buckets(Rate(per_second, burst), 10), 0.0, 0
    for step in steps:
        now += step
        wait = buckets.take("a", now)
        passed += wait == 0.0
        assert 0.0 <= wait <= 1 / per_second + 1e-6
    assert passed <= burst + now * per_second + 1e-6


@given(st.floats(0.1, 50), st.integers(1, 20))
@many(50)
def test_whoever_waits_as_told_passes(per_second, burst):
    buckets, now = Buckets(Rate(per_second, burst), 10), 0.0
    for _ in range(50):
        now += buckets.take("a", now) * 1.000001
    assert buckets.take("a", now + 1 / per_second) == 0.0


def test_a_clock_that_goes_back_gives_nothing():
    buckets = Buckets(Rate(1, 1), 10)
    assert buckets.take("a", 10.0) == 0.0
    assert buckets.take("a", 5.0) > 0


def test_memory_is_bounded_and_the_quietest_is_forgotten():
    buckets = Buckets(Rate(0.001, 1), 3)
    for caller in "abc":
        assert buckets.take(caller, 0.0) == 0.0
    assert buckets.take("a", 0.0) > 0  # heard of again, so b is the quietest now
    assert buckets.take("d", 0.0) == 0.0
    assert len(buckets) == 3
    assert buckets.take("a", 0.0) > 0
    assert buckets.take("b", 0.0) == 0.0
    for number in range(1000):
        buckets.take(number, 0.0)
    assert len(buckets) == 3


@pytest.mark.parametrize("rate", [Rate(0, 1), Rate(-1, 1), Rate(1, 0), Rate(float("nan"), 1), Rate(float("inf"), 1)])
def test_rates_that_make_no_sense_are_told(rate):
    with pytest.raises(LocalError):
        Buckets(rate, 10)
    with pytest.raises(LocalError):
        rate_limited(handler, RateLimits(calls=rate), local=False)


# --- refusals ---


async def test_a_call_too_many_is_a_result_for_the_model():
    limited = Limited(RateLimits(calls=Rate(0.5, 2)))
    assert [await limited() for _ in range(2)] == [{"done": "tools/call"}] * 2
    refused = await limited()
    assert refused["isError"] is True
    assert refused["content"][0]["text"] == (
        "Too many calls: 0.5 calls per second and 2 at once for each caller are allowed. Try again in 2 s; who runs "
        "this server changes the limit with Server(rate_limits=...)"
    )
    limited.now += 2
    assert await limited() == {"done": "tools/call"}


async def test_a_completion_too_many_is_an_error_with_the_time_to_wait():
    limited = Limited(RateLimits(completions=Rate(1, 1)))
    await limited("completion/complete")
    with pytest.raises(InternalError, match="Try again in 1 s") as refused:
        await limited("completion/complete")
    assert refused.value.data == {"retryAfterSeconds": 1}
    assert await limited() == {"done": "tools/call"}  # calls have a bucket of their own


async def test_other_methods_and_what_is_not_limited_always_pass():
    limited = Limited(RateLimits(calls=Rate(1, 1), completions=None))
    for method in ("tools/list", "resources/read", "completion/complete", "server/discover"):
        assert [await limited(method) for _ in range(50)] == [{"done": method}] * 50


async def test_each_principal_has_its_own():
    limited = Limited(RateLimits(calls=Rate(1, 1)))
    assert "done" in await limited(principal=ADA)
    assert "isError" in await limited(principal=ADA)
    assert "done" in await limited(principal=BOB)


async def test_who_owns_the_process_is_limited_only_if_asked_for():
    limits = RateLimits(calls=Rate(1, 1))
    assert all(["done" in await Limited(limits)(principal=LOCAL) for _ in range(5)])
    limited = Limited(limits, local=True)
    assert "done" in await limited(principal=LOCAL)
    assert "isError" in await limited(principal=LOCAL)


async def test_the_nameless_are_told_apart_by_their_address():
    limited = Limited(RateLimits(calls=Rate(1, 1)))
    assert "done" in await limited(principal=ANONYMOUS, outlet=From("10.0.0.1"))
    assert "isError" in await limited(principal=ANONYMOUS, outlet=From("10.0.0.1"))
    assert "done" in await limited(principal=ANONYMOUS, outlet=From("10.0.0.2"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("nonsense:", "nonsense:", True),
    ],
)
def test_an_ipv6_network_is_one_caller(one, other, same):
    found = [caller_key(Request(principal=ANONYMOUS, outlet=From(address))) for address in (one, other)]
    assert (found[0] == found[1]) is same


def test_where_no_address_is_known_the_connection_counts():
    first, second = From(None), From(None)
    keys = [caller_key(Request(principal=ANONYMOUS, outlet=outlet)) for outlet in (first, first, second)]
    assert keys[0] == keys[1] != keys[2]


def test_the_numbers_that_hold_over_http():
    assert RateLimits(calls=Rate(50, 500), completions=Rate(20, 100), local=False, callers=10_000) == HTTP_LIMITS


# --- several workers ---


def test_workers_that_share_a_table_count_together(tmp_path):
    """Whatever their number: a caller has one rate, on one connection or on many."""
    workers = [Buckets(Rate(0.001, 6), 10) for _ in range(3)]
    tables = [RateTable(tmp_path / "rates") for _ in workers]
    for buckets, table in zip(workers, tables, strict=True):
        buckets.spread(3)  # counts for nothing while there is a table
        buckets.share(table, "notes")
    for caller in ("192.0.2.1", b"\x20\x01", Principal("i", "ada")):
        assert [workers[turn % 3].take(caller, 0.0) for turn in range(6)] == [0.0] * 6
        assert all(buckets.take(caller, 0.0) > 900 for buckets in workers)
        other = Buckets(Rate(0.001, 6), 10, "completions")
        other.share(tables[0], "notes")
        assert other.take(caller, 0.0) == 0.0, "another rate of the same caller"
    assert [buckets.take("192.0.2.2", 0.0) for buckets in workers[:1] * 6] == [0.0] * 6
    for table in tables:
        table.close()


def test_a_table_that_fails_is_left_for_counting_here(tmp_path, caplog):
    buckets = Buckets(Rate(0.001, 2), 10)
    table = RateTable(tmp_path / "rates")
    buckets.share(table, "notes")
    table.close()
    assert [buckets.take("a", 0.0) > 0 for _ in range(3)] == [False, False, True]
    assert len(caplog.records) == 1


async def test_the_first_refusal_is_in_the_log_with_the_way_out(caplog):
    limited = Limited(RateLimits(calls=Rate(0.5, 1)))
    for _ in range(4):
        await limited()
    [record] = caplog.records
    assert "rate_limits" in record.getMessage() and "trusted_proxies" in record.getMessage()
