"""Limits on password guesses: what counts against which limit, and whom it does not stop."""

from __future__ import annotations

from interlock.auth.authorization_server.login_limiter import LoginAttempt, LoginLimiter

HOME, ELSEWHERE = "192.0.2.1", "198.51.100.1"


class Now:
    def __init__(self):
        self.time = 1000.0

    def __call__(self):
        return self.time


def guesses_until_refused(limiter, attempts):
    """How many of these are checked before the first refusal."""
    for count, attempt in enumerate(attempts):
        if limiter.take(attempt):
            return count
    return None


def addresses(count):
    return [f"10.0.{number // 250}.{number % 250 + 1}" for number in range(count)]


def test_guesses_at_one_address_stop_nobody_at_another():
    limiter = LoginLimiter(Now())
    assert guesses_until_refused(limiter, [LoginAttempt("ada", ELSEWHERE)] * 9) == 5
    assert guesses_until_refused(limiter, [LoginAttempt("ada", HOME)] * 9) == 5


def test_ever_new_names_from_one_address_are_limited():
    now = Now()
    limiter = LoginLimiter(now)
    names = [LoginAttempt(f"name {number}", ELSEWHERE) for number in range(100)]
    assert guesses_until_refused(limiter, names) == 20
    now.time += 30
    assert guesses_until_refused(limiter, names[50:]) == 1
    assert limiter.take(LoginAttempt("name 1", HOME)) == 0


def test_names_that_an_address_may_not_guess_push_no_other_limit_out():
    limiter = LoginLimiter(Now())
    device = LoginAttempt("ada", HOME, "stolen")
    assert guesses_until_refused(limiter, [device] * 9) == 5
    for number in range(20_001):
        limiter.take(LoginAttempt(f"name {number}", ELSEWHERE))
    assert limiter.take(device) > 0


def test_an_address_is_the_network_of_one_subscriber():
    limiter = LoginLimiter(Now())
    names = [LoginAttempt(f"name {number}", f"2001:db8::{number:x}") for number in range(100)]
    assert guesses_until_refused(limiter, names) == 20


def test_one_account_is_slowed_down_over_all_addresses():
    now = Now()
    limiter = LoginLimiter(now)
    attempts = [LoginAttempt("ada", address) for address in addresses(300)]
    assert guesses_until_refused(limiter, attempts) == 100
    assert limiter.take(LoginAttempt("bob", HOME)) == 0
    now.time += 60
    assert guesses_until_refused(limiter, attempts[200:]) == 1


def test_a_known_device_waits_for_its_own_guesses_only():
    limiter = LoginLimiter(Now())
    known = LoginAttempt("ada", HOME, "device-1")
    for address in [*addresses(300), *[HOME] * 50]:
        limiter.take(LoginAttempt("ada", address))
    for number in range(50):
        limiter.take(LoginAttempt(f"name {number}", HOME))
    assert guesses_until_refused(limiter, [known] * 9) == 5
    assert limiter.take(LoginAttempt("ada", HOME, "device-2")) == 0


def test_a_refused_guess_costs_nothing():
    now = Now()
    limiter = LoginLimiter(now)
    for _ in range(1000):
        limiter.take(LoginAttempt("ada", ELSEWHERE))  # 5 are checked
    assert guesses_until_refused(limiter, [LoginAttempt("bob", ELSEWHERE)] * 9) == 5
    others = [LoginAttempt("ada", address) for address in addresses(200)]
    assert guesses_until_refused(limiter, others) == 95
    now.time += 60  # the account was refused 1 time above: the other two limits of that address are whole
    assert guesses_until_refused(limiter, [LoginAttempt("ada", others[95].address)] * 9) == 1


def test_a_right_password_clears_its_own_limit_and_gives_others_no_new_guesses():
    limiter = LoginLimiter(Now())
    owner = LoginAttempt("ada", HOME)
    attackers = [LoginAttempt("ada", address) for address in addresses(300)]
    for attempt in attackers[:90]:
        assert limiter.take(attempt) == 0
    for _ in range(50):  # logins that succeed cost the account nothing
        assert limiter.take(owner) == 0
        limiter.succeed(owner)
    assert guesses_until_refused(limiter, attackers[90:]) == 10


def test_an_account_of_ones_own_gives_no_new_guesses_for_others():
    limiter = LoginLimiter(Now())
    mine = LoginAttempt("mallory", ELSEWHERE)
    checked = 0
    for number in range(100):
        if not limiter.take(mine):
            limiter.succeed(mine)
        checked += not limiter.take(LoginAttempt(f"name {number}", ELSEWHERE))
    assert checked == 20
