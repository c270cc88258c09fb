"""host/servers/logs.py: what servers log, as far as anybody can read it."""

from interlock.host.servers.logs import ServerLogs


class Time:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_message_says_who_and_what():
    told = []
    log = ServerLogs(lambda *words: told.append(words)).listener("notes")
    log("error", "it \x1b[2K broke", "db")
    log("info", {"a": [1]}, None)
    assert told == [
        ("notes", r"notes (db): error: it \x1b[2K broke", "error"),
        ("notes", 'notes: info: {"a":[1]}', "info"),
    ]


def test_a_long_one_is_cut():
    told = []
    ServerLogs(lambda server, text, level: told.append(text)).listener("a")("info", "x" * 100_000, None)
    assert len(told[0]) < 2_100


def test_a_flood_is_counted_and_does_not_drown_the_others():
    told, time = [], Time()
    logs = ServerLogs(lambda server, text, level: told.append(text), time)
    loud, quiet = logs.listener("loud"), logs.listener("quiet")
    for number in range(1_000):
        loud("info", str(number), None)
    quiet("info", "hello", None)
    assert len(told) == 21 and told[-1] == "quiet: info: hello"
    time.now = 1.5
    loud("info", "again", None)
    assert told[-2:] == ["loud logged 980 more messages than can be shown", "loud: info: again"]
