"""host/catalogue/selection.py: a budget of tokens, what comes first, and how the rest is found."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.host.catalogue.catalogue import Catalogue
from interlock.host.catalogue.listing import Offer
from interlock.host.catalogue.selection import OWN as ALL_OWN
from interlock.host.catalogue.selection import READ, SEARCH, Selection
from interlock.wire.types.tools import Tool
from support.properties import many


def catalogue(**servers):
    found = Catalogue(servers)
    for server, tools in servers.items():
        items = {
            name: Tool(name=name, description=text, input_schema={"type": "object"}) for name, text in tools.items()
        }
        found.put(server, Offer(tools=items))
    return found


MANY = catalogue(
    mail={f"mail_{number:02}": "Do something with letters" for number in range(40)} | {"send": "Send a letter"},
    sky={"forecast": "The weather of tomorrow", "stars": "What shines tonight"},
)


OWN = [name for name in ALL_OWN if name != READ]


def names(offered):
    return [tool["name"] for tool in offered.tools]


def test_within_the_budget_all_are_there_in_their_order():
    offered = Selection(MANY).turn(budget=100_000)
    assert names(offered) == [*MANY.tools] and not offered.left_out
    assert offered.tokens == sum(MANY.costs().values())
    assert names(Selection(MANY).turn()) == names(offered)


def test_beyond_it_what_the_turn_is_about_comes_first():
    offered = Selection(MANY).turn("how is the weather tomorrow", budget=350)
    assert names(offered)[:3] == [*OWN] and "sky__forecast" in names(offered)
    assert offered.tokens <= 350 and "mail__mail_39" in offered.left_out
    assert {*names(offered), *offered.left_out} == {*MANY.tools, *OWN}


def test_what_is_wanted_comes_before_all():
    assert "mail__mail_39" in names(Selection(MANY).turn("weather", budget=350, wanted=["mail__mail_39", "gone"]))


def test_without_a_clue_servers_share():
    told = names(Selection(MANY).turn("", budget=400))
    assert any(name.startswith("sky__") for name in told) and any(name.startswith("mail__") for name in told)


def test_the_order_does_not_depend_on_the_text():
    order = [*OWN, *MANY.tools]
    for text in ("weather", "send letters"):
        told = names(Selection(MANY).turn(text, budget=500))
        assert told == sorted(told, key=order.index)


@given(st.integers(0, 3000), st.text(max_size=20))
@many(50)
def test_no_turn_costs_more_than_its_budget_but_for_the_search(budget, text):
    offered = Selection(MANY).turn(text, budget=budget)
    assert offered.tokens <= budget or names(offered) == [*OWN]


def test_the_rest_is_found():
    selection = Selection(MANY)
    assert selection.search("send")[0].exposed == "mail__send"
    [found, *_] = selection.found("shines tonight", limit=1)
    assert found == {"name": "sky__stars", "server": "sky", "description": "What shines tonight"}
    assert not selection.found("xylophone") and len(selection.found("letters", limit=1000)) <= 50


def test_a_change_of_the_catalogue_is_found():
    changing = catalogue(a={"x": "apples"})
    selection = Selection(changing)
    assert selection.search("apples") and not selection.search("pears")
    changing.put("a", Offer(tools={"y": Tool(name="y", description="pears", input_schema={})}))
    assert selection.search("pears") and not selection.search("apples")


def test_the_own_tools_say_what_they_take():
    own = {tool["name"]: tool["input_schema"] for tool in Selection(MANY).turn(budget=0).tools}
    assert own[SEARCH]["required"] == ["query"] and set(own) == set(OWN)


def test_results_that_were_cut_can_be_read_on():
    plain, more = (Selection(MANY).turn("weather", budget=600, results=results) for results in (False, True))
    assert names(more)[-1] == READ and READ not in names(plain) and more.tokens <= 600
