"""host/launch/code_variables.py: variables that decide which code runs."""

import pytest

from interlock.host.launch.code_variables import decides_code

NAMES = """
PATH LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES PYTHONPATH PYTHONSTARTUP NODE_OPTIONS NODE_EXTRA_CA_CERTS
npm_config_registry NPM_CONFIG_USERCONFIG OPENSSL_CONF OPENSSL_MODULES GIT_SSH_COMMAND GIT_CONFIG_GLOBAL GIT_ASKPASS
GIT_EXEC_PATH RUBYOPT RUBYLIB PERL5OPT PERL5LIB BASH_ENV ENV SHELLOPTS PIP_INDEX_URL UV_INDEX_URL GEM_HOME
JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH DOTNET_STARTUP_HOOKS LUA_INIT PHPRC JULIA_LOAD_PATH DOCKER_HOST ZDOTDIR
XDG_CONFIG_HOME HTTPS_PROXY https_proxy GOFLAGS GOPROXY SSL_CERT_FILE Path EDITOR PAGER
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_it_decides_what_runs(name):
    assert decides_code(name)


@pytest.mark.parametrize("name", ["API_KEY", "GITHUB_TOKEN", "LOG_LEVEL", "NOTES_FOLDER", "PORT", "LANG"])
def test_it_is_data(name):
    assert not decides_code(name)
