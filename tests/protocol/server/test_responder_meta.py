"""What the edge of the stateless era puts on results."""

from msgspec.json import decode

from interlock.protocol.server.responder import NO_STAMP, Stamp
from interlock.wire.messages import encode
from interlock.wire.meta import SERVER_INFO

STAMP = Stamp({SERVER_INFO: {"name": "s", "version": "0"}})


def stamped(result, stamp=STAMP):
    return decode(encode(stamp.on(result)))


def test_a_result_says_that_it_is_complete_and_who_made_it():
    said = {"resultType": "complete", "content": [], "_meta": {SERVER_INFO: {"name": "s", "version": "0"}}}
    assert stamped({"content": []}) == said
    assert stamped({"content": [], "_meta": {}}) == said


def test_what_a_result_says_itself_stays():
    told = {"resultType": "input_required", "_meta": {SERVER_INFO: "kept", "com.example/x": 1}}
    assert stamped(told) == told
    assert stamped({"_meta": {"com.example/x": 1}})["_meta"] == {
        "com.example/x": 1,
        SERVER_INFO: {"name": "s", "version": "0"},
    }


def test_without_a_maker_only_the_type_is_said():
    assert stamped({"content": []}, NO_STAMP) == {"resultType": "complete", "content": []}


def test_the_result_itself_is_left_as_it_was():
    result = {"content": [], "_meta": {"com.example/x": 1}}
    STAMP.on(result)
    assert result == {"content": [], "_meta": {"com.example/x": 1}}
