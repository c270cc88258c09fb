"""No server at all: answers the driver's n-th call with prepared bytes, without reading it.

What the driver counts here is the driver's own ceiling: what comes near it is faster than the bench can tell.
"""

import os
import sys

ANSWER = b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[{"type":"text","text":"%d"}]}}\n'


def main(prepared: int) -> None:
    answers = [ANSWER % (number, number + 1) for number in range(1, prepared + 1)]
    answered = 0
    while chunk := os.read(0, 1 << 20):
        count = chunk.count(b"\n")
        os.write(1, b"".join(answers[answered : answered + count]))
        answered += count


if __name__ == "__main__":
    main(int(sys.argv[1]))
