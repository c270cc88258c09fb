"""client/config/variables.py: what stands behind ${...}, and what of it is hidden."""

import os
from pathlib import Path

import pytest

from interlock.client.config.parser import ConfigError
from interlock.client.config.variables import Input, Lookup, Values, looks_secret, redact_template

ENVIRON = {"TOKEN": "hunter2hunter2", "HOME": "/home/somebody", "SHORT": "abc", "EMPTY": ""}
DECLARED = {
    "key": Input(id="key", description="The key", password=True),
    "size": Input(id="size", options=("s", "m"), default="s"),
}


def values(folder=Path("/etc"), workspace=None, inputs=None):
    return Values(folder, workspace, DECLARED, inputs, ENVIRON)


def filled(text, **given):
    lookup = Lookup()
    return values(**given).fill(text, "at", lookup).value, [*lookup.found]


@pytest.mark.parametrize(
    ("text", "found", "hidden"),
    [
        ("plain $HOME $$ ${", "plain $HOME $$ ${", []),
        ("Bearer ${env:TOKEN}!", "Bearer hunter2hunter2!", ["hunter2hunter2"]),
        ("${TOKEN}", "hunter2hunter2", ["hunter2hunter2"]),
        ("${env:HOME}/x", "/home/somebody/x", []),
        ("${env:SHORT}${EMPTY}", "abc", []),
        ("${NONE:-else}", "else", []),
        ("${NONE:-}", "", []),
        ("a${/}b${pathSeparator}", f"a{os.sep}b{os.sep}", []),
        ("${userHome}", str(Path.home()), []),
    ],
)
def test_references(text, found, hidden):
    assert filled(text) == (found, hidden)


def test_the_workspace():
    assert filled("${workspaceFolder}:${workspaceFolderBasename}", workspace=Path("/a/b"))[0] == "/a/b:b"
    with pytest.raises(ConfigError, match=r"at: .*workspace="):
        filled("${workspaceFolder}")


def test_a_file_is_one_value(tmp_path):
    (tmp_path / "token").write_text("hunter2 hunter2\r\n\n")
    found = filled("x ${file:token}", folder=tmp_path)
    assert found == ("x hunter2 hunter2", ["hunter2 hunter2"])
    assert filled(f"${{file:{tmp_path}/token}}")[0] == "hunter2 hunter2"
    with pytest.raises(ConfigError, match=r"at: .*cannot be read"):
        filled("${file:none}", folder=tmp_path)


def test_what_was_found_is_not_looked_into_again():
    given = values(inputs={"key": "${env:TOKEN}"})
    assert given.fill("${input:key}", "at", Lookup()).value == "${env:TOKEN}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("${env:NONE}", "NONE is not set"),
        ("${NONE}", "NONE is not set"),
        ("${command:rm}", "not known here"),
        ("${config:a.b}", "not known here"),
        ("${keyring:a}", "not known here"),
        ("${}", "not known here"),
        ("${input:other}", "not among the inputs"),
        ("${input:key}", r"input 'key' \(The key\) is not given"),
    ],
)
def test_what_is_not_known_is_an_error_at_its_place(text, told):
    with pytest.raises(ConfigError, match=f"at: .*{told}"):
        filled(text)


def test_a_user_is_asked_once():
    asked = []

    def ask(input):
        asked.append(input)
        return "hunter2"

    given = values(inputs=ask)
    lookup = Lookup(asks=False)
    before = given.fill("--key ${input:key}", "at", lookup)
    assert asked == [] and before.has_question and lookup.found == {}
    assert before.value == before.shown == before.known == "--key ${input:key}"
    lookup = Lookup()
    after = given.fill("${input:key} ${input:key}", "at", lookup)
    assert after.value == "hunter2 hunter2" and after.shown == after.known == "${input:key} ${input:key}"
    assert asked == [DECLARED["key"]] and lookup.found == {"hunter2": "${input:key}"}
    assert "hunter2" not in repr(given)


def test_an_input_is_one_of_its_options_and_a_default_is_never_taken_unasked():
    assert filled("${input:size}", inputs={"size": "m"})[0] == "m"
    with pytest.raises(ConfigError, match="none of its options"):
        filled("${input:size}", inputs={"size": "xl"})
    with pytest.raises(ConfigError, match="not given"):
        filled("${input:size}", inputs={})


def test_where_a_server_is_started(tmp_path):
    assert values().folder_of(None) is None
    assert values().folder_of("x") == "/etc/x"
    assert values(workspace=tmp_path).folder_of(None) == str(tmp_path)
    assert values(workspace=tmp_path).folder_of("x") == str(tmp_path / "x")


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [("API_KEY", "x", True), ("OPENAI_KEY", "x", True), ("A", "ghp_0123456789abcdef", True), ("LEVEL", "debug", False)],
)
def test_what_looks_secret(name, value, secret):
    assert looks_secret(name, value) is secret


@pytest.mark.parametrize(("path", "told"), [("~nobody-here/x", "no such user"), ("a\0b", "NUL character")])
def test_a_path_that_cannot_be_one_is_an_error_of_the_configuration(path, told):
    values = Values(Path.cwd(), None, {}, None, {}, confined=True)
    for use in (values.path, values.folder_of, lambda text: values.references(f"${{file:{text}}}")):
        with pytest.raises(ConfigError, match=told):
            use(path)


def test_a_confined_configuration_waits_for_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    values = Values(tmp_path, None, {}, None, {}, confined=True)
    with pytest.raises(ConfigError, match="is not a regular file"):
        values.fill("${file:pipe}", "headers.a", Lookup())


def test_a_text_is_shown_with_its_references_as_they_are_written(tmp_path):
    (tmp_path / "key").write_text("from-a-file")
    given = values(folder=tmp_path, workspace=Path("/space"), inputs={"key": "told-before"})
    text = f"${{workspaceFolder}} ${{env:TOKEN}} ${{NONE:-x}} ${{file:{tmp_path}/key}} ${{input:key}} ${{HOME}}"
    found = given.fill(text, "at", Lookup())
    assert found.value == found.known == "/space hunter2hunter2 x from-a-file told-before /home/somebody"
    assert found.shown == f"/space ${{env:TOKEN}} ${{NONE:-x}} ${{file:{tmp_path}/key}} ${{input:key}} /home/somebody"
    assert found.has_file and found.is_looked_up and not found.has_question


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://x/${env:T}/mcp?key=${env:K}&token=${T}", "https://x/${env:T}/mcp?key=${env:K}&token=${T}"),
        ("https://x/?token=literal&b=${env:K}", "https://x/?token=[redacted]&b=${env:K}"),
        ("https://x/?token=literal\x1f${env:K}", "https://x/?token=[redacted]\x1f${env:K}"),
        ("cookie: a=${env:A}; b=${env:B}", "cookie: [redacted]"),
    ],
)
def test_secrets_that_stand_in_a_text_are_redacted_beside_its_references(text, shown):
    assert redact_template(text) == shown


def test_a_confined_configuration_reads_below_folders_that_are_allowed(tmp_path):
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
        (folder / "key").write_text("value")
    confined = Values(own, None, {}, None, {}, confined=True)
    with pytest.raises(
        ConfigError, match=r"is outside of .*move the file there, or allow its folder with --allow-folder"
    ):
        confined.fill(f"${{file:{other}/key}}", "at", Lookup())
    allowing = Values(own, None, {}, None, {}, confined=True, allowed_folders=[other])
    assert allowing.fill(f"${{file:key}} ${{file:{other}/key}}", "at", Lookup()).value == "value value"
    with pytest.raises(ConfigError, match="is outside of"):
        allowing.fill(f"${{file:{other}/../key}}", "at", Lookup())
