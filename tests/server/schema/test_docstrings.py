"""server/schema/docstrings.py: the text about a tool and about its parameters, in three styles."""

import pytest

from interlock.server.schema.docstrings import Docs, read_docstring

GOOGLE = """Book a flight.

    Seats are
    limited.

    Args:
        flight (str): The number,
            such as OS 1.
        seats: How many: at least one.

        *names: Of the travellers.

    Returns:
        A ticket.

    Raises:
        ValueError: never.

    Example:
        >>> book("OS 1")
    """
NUMPY = """Book a flight.

    Parameters
    ----------
    flight : str, optional
        The number,
        such as OS 1.
    first, last
        Names.

        Both.

    Returns
    -------
    int
        Not told.

    Notes
    -----
    Seats are limited.
    """
SPHINX = """Book a flight.

    :param flight: The number,
        such as OS 1.
    :param int seats: How many.
    :type flight: str
    :returns: a ticket
    :raises ValueError: never

    Seats are limited.
    """


def test_google():
    assert read_docstring(GOOGLE) == Docs(
        'Book a flight.\n\nSeats are limited.\n\nExample:\n    >>> book("OS 1")',
        {"flight": "The number, such as OS 1.", "seats": "How many: at least one.", "names": "Of the travellers."},
    )


@pytest.mark.parametrize(
    "type_text",
    [
        "tuple (int, int), optional",
        "Callable[[tuple()], str]",
        "dict[str: int]",
        "Literal['a (b)', 'c']",
        "((nested) twice)",
    ],
)
def test_a_type_may_hold_parentheses_and_colons(type_text):
    text = f"Book.\n\nArgs:\n    seats ({type_text}): How many: at least one.\n    flight: The number.\n"
    assert read_docstring(text).parameters == {"seats": "How many: at least one.", "flight": "The number."}


def test_a_type_that_is_never_closed_is_text_of_the_parameter_above():
    text = "Book.\n\nArgs:\n    seats: How many.\n    flight (str: broken\n"
    assert read_docstring(text).parameters == {"seats": "How many. flight (str: broken"}


def test_numpy():
    assert read_docstring(NUMPY) == Docs(
        "Book a flight.\n\nNotes\n-----\nSeats are limited.",
        {"flight": "The number, such as OS 1.", "first": "Names. Both.", "last": "Names. Both."},
    )


def test_sphinx():
    assert read_docstring(SPHINX) == Docs(
        "Book a flight.\n\nSeats are limited.", {"flight": "The number, such as OS 1.", "seats": "How many."}
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, ""),
        ("", ""),
        ("  One line. ", "One line."),
        ("Two\n    lines.", "Two lines."),
        ("Choose:\n\n    - a\n    - b\n", "Choose:\n\n- a\n- b"),
        ("Choose:\n    1. a\n    2. b", "Choose:\n1. a\n2. b"),
        ("It does.\n\n    Arguments are strings: all of them.", "It does.\n\nArguments are strings: all of them."),
        ("It does.\n\n    Args:\n        a: b\n    And more.", "It does.\n\nAnd more."),
        ("It adds.\n\n    >>> add(1, 2)\n    3", "It adds.\n\n>>> add(1, 2)\n3"),
        ("It adds.\n\n    ```\n    add 1\n    ```", "It adds.\n\n```\nadd 1\n```"),
    ],
)
def test_what_describes_the_tool(text, told):
    assert read_docstring(text).text == told


def test_a_section_without_items_says_nothing():
    assert read_docstring("Do.\n\n    Args:\n\n    Returns:\n        x").parameters == {}
    assert read_docstring("Do.\n\n    Args:\n        no colon here\n").parameters == {}
