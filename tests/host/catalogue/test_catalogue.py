"""host/catalogue/catalogue.py: one view of everything, in an order that depends on nothing but what is there."""

from itertools import permutations

from interlock.host.catalogue.catalogue import Catalogue, for_model
from interlock.host.catalogue.listing import Offer
from interlock.wire.types.prompts import Prompt
from interlock.wire.types.resources import Resource, ResourceTemplate
from interlock.wire.types.tools import Tool, ToolAnnotations


def tools(*names, **members):
    return {name: Tool(name=name, input_schema={"type": "object"}, **members) for name in names}


def offer(*names, **members):
    return Offer(tools=tools(*names, **members))


def filled(order=("a", "b"), **offers):
    catalogue = Catalogue(order)
    for server, each in offers.items():
        catalogue.put(server, each)
    return catalogue


def test_tools_are_found_by_the_name_that_models_see():
    entry = filled(a=offer("x")).tools["a__x"]
    assert (entry.server, entry.name, entry.item.name, entry.exposed) == ("a", "x", "x", "a__x")


def test_the_order_is_that_of_the_servers_and_then_of_the_names():
    offers = {"a": offer("z", "y"), "b": offer("x"), "c": offer("w")}
    for arrival in permutations(offers):
        catalogue = filled(("b", "a", "c"), **{server: offers[server] for server in arrival})
        assert [*catalogue.tools] == ["b__x", "a__y", "a__z", "c__w"]


def test_a_change_is_seen_and_nothing_is_made_anew_without_one():
    catalogue = filled(a=offer("x"))
    before, version = catalogue.tools, catalogue.version
    assert not catalogue.put("a", offer("x")) and catalogue.tools is before and catalogue.version == version
    assert catalogue.put("a", offer("y")) and [*catalogue.tools] == ["a__y"] and catalogue.version != version
    assert catalogue.put("a", Offer()) and not catalogue.tools


def test_a_newcomer_does_not_take_a_name():
    catalogue = filled(a=offer("pay"))
    catalogue.put("b", offer("pay", "a__pay"))
    assert catalogue.tools["a__pay"].server == "a"
    assert {entry.server for name, entry in catalogue.tools.items() if name != "a__pay"} == {"b"}


def test_names_that_several_servers_use_are_told():
    catalogue = filled(a=offer("pay", "read"), b=offer("Pay", "write"))
    assert catalogue.shadows() == [("pay", [("a", "pay"), ("b", "Pay")])]
    assert not filled(a=offer("pay", "Pay")).shadows()  # its own names look alike: told apart by digests


def test_resources_templates_and_prompts_belong_to_their_server():
    of_a = Offer(resources={"u": Resource(uri="u", name="n")}, prompts={"p": Prompt(name="p")})
    of_b = Offer(
        resources={"u": Resource(uri="u", name="m")}, templates={"t": ResourceTemplate(uri_template="t", name="t")}
    )
    catalogue = filled(a=of_a, b=of_b)
    assert [(server, each.name) for server, each in catalogue.resources] == [("a", "n"), ("b", "m")]
    assert [(server, each.uri_template) for server, each in catalogue.templates] == [("b", "t")]
    assert catalogue.prompts["a__p"].server == "a"
    assert catalogue.offer("a") is of_a and catalogue.offer("nobody") == Offer()


def test_instructions_are_per_server_and_without_what_cannot_be_seen():
    catalogue = filled(a=Offer(instructions="Be\u200b kind"), b=Offer(instructions=""))
    assert catalogue.instructions == {"a": "Be\\u200b kind"}


def test_costs_are_per_server():
    catalogue = filled(a=offer("x", description="word " * 100), b=offer("y"))
    costs = catalogue.costs()
    assert costs["a"] > costs["b"] > 0 and costs["a"] == catalogue.cost(catalogue.tools["a__x"])
    assert filled(a=Offer(instructions="word " * 100)).costs()["a"] > 100


def test_the_title_is_title_then_annotation_then_name():
    def title(**members):
        return filled(a=offer("x", **members)).tools["a__x"].title

    assert title(title="T", annotations=ToolAnnotations(title="A")) == "T"
    assert title(annotations=ToolAnnotations(title="A")) == "A"
    assert title(annotations=ToolAnnotations(title="")) == title() == "x"


def test_a_model_is_told_name_description_and_schema_and_nothing_unseen():
    entry = filled(a=offer("x", description="d\U000e0041", title="t")).tools["a__x"]
    assert for_model(entry) == {
        "name": "a__x",
        "description": "d\\U000e0041",
        "input_schema": {"type": "object", "properties": {}},
    }
