"""Interlock: the Model Context Protocol in all its revisions, for servers, clients and hosts.

    from interlock import Server, Client

The names below are loaded when they are first used, so that a server does not pay for the client and vice versa.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .auth.authorization_server.app import IssuerApp
    from .auth.authorization_server.client_metadata import KnownClient, hash_secret
    from .auth.authorization_server.passwords import hash_password
    from .auth.authorization_server.server import AuthorizationServer, IdentityProvider
    from .auth.authorization_server.workload_identity import Workload, WorkloadPlatform
    from .auth.client.providers import ClientCredentials, EnterpriseManaged, OAuth, WorkloadIdentity
    from .auth.resource_server.protection import Introspection, Protection
    from .client.client import Client
    from .client.completion_cache import Completion
    from .client.config.entries import read_config
    from .client.config.parser import ConfigError
    from .client.retry_policy import OutcomeUnknown
    from .client.subscriptions import Change
    from .client.supervisor import StateChange, Supervision
    from .client.sync.client import SyncClient
    from .host.chat.conversation import Conversation
    from .host.chat.host_tools import HostTools
    from .host.gate.action import Denied
    from .host.gate.policy import Policy, Rule
    from .host.host import Host
    from .host.servers.managed_server import Seat
    from .server.content import Audio, File, Image
    from .server.context import Context
    from .server.execution.concurrency import Concurrency
    from .server.execution.rate_limits import Rate, RateLimits
    from .server.input import Declined
    from .server.registry.completions import Suggestions
    from .server.registry.visibility import Item
    from .server.resources.folder import files
    from .server.server import Server
    from .server.tools.results import ToolResult
    from .transport.jsonrpc.keepalive import Keepalive
    from .transport.stdio.child_process import Command
    from .wire.channel import Patience
    from .wire.errors import (
        AuthorizationFailed,
        AuthRequired,
        CallTimeout,
        CannotAsk,
        ConnectionEnded,
        ConnectionLost,
        HandshakeFailed,
        InterlockError,
        LocalError,
        LoginRequired,
        NotOpen,
        PeerClosed,
        Refused,
        RemoteError,
        ResourceNotFound,
        SpawnFailed,
        ToolError,
    )
    from .wire.exchange import Exchange, Principal
    from .wire.types.common import Annotations, Icon
    from .wire.types.content import (
        AudioContent,
        EmbeddedResource,
        ImageContent,
        ResourceContents,
        ResourceLink,
        TextContent,
    )
    from .wire.types.prompts import PromptMessage
    from .wire.types.tools import ToolAnnotations

_WHERE = {
    "Annotations": "wire.types.common",
    "Audio": "server.content",
    "AudioContent": "wire.types.content",
    "AuthRequired": "wire.errors",
    "AuthorizationFailed": "wire.errors",
    "AuthorizationServer": "auth.authorization_server.server",
    "CallTimeout": "wire.errors",
    "CannotAsk": "wire.errors",
    "Change": "client.subscriptions",
    "Client": "client.client",
    "ClientCredentials": "auth.client.providers",
    "Command": "transport.stdio.child_process",
    "Completion": "client.completion_cache",
    "Concurrency": "server.execution.concurrency",
    "ConfigError": "client.config.parser",
    "ConnectionEnded": "wire.errors",
    "ConnectionLost": "wire.errors",
    "Conversation": "host.chat.conversation",
    "Context": "server.context",
    "Declined": "server.input",
    "Denied": "host.gate.action",
    "EmbeddedResource": "wire.types.content",
    "EnterpriseManaged": "auth.client.providers",
    "Exchange": "wire.exchange",
    "File": "server.content",
    "HandshakeFailed": "wire.errors",
    "Host": "host.host",
    "HostTools": "host.chat.host_tools",
    "Icon": "wire.types.common",
    "IdentityProvider": "auth.authorization_server.server",
    "Image": "server.content",
    "ImageContent": "wire.types.content",
    "InterlockError": "wire.errors",
    "Introspection": "auth.resource_server.protection",
    "IssuerApp": "auth.authorization_server.app",
    "Item": "server.registry.visibility",
    "Keepalive": "transport.jsonrpc.keepalive",
    "KnownClient": "auth.authorization_server.client_metadata",
    "LoginRequired": "wire.errors",
    "OAuth": "auth.client.providers",
    "OutcomeUnknown": "client.retry_policy",
    "LocalError": "wire.errors",
    "NotOpen": "wire.errors",
    "Patience": "wire.channel",
    "PeerClosed": "wire.errors",
    "Policy": "host.gate.policy",
    "Principal": "wire.exchange",
    "PromptMessage": "wire.types.prompts",
    "Protection": "auth.resource_server.protection",
    "Rate": "server.execution.rate_limits",
    "RateLimits": "server.execution.rate_limits",
    "Refused": "wire.errors",
    "RemoteError": "wire.errors",
    "ResourceContents": "wire.types.content",
    "ResourceLink": "wire.types.content",
    "ResourceNotFound": "wire.errors",
    "Rule": "host.gate.policy",
    "Seat": "host.servers.managed_server",
    "Server": "server.server",
    "StateChange": "client.supervisor",
    "SpawnFailed": "wire.errors",
    "Suggestions": "server.registry.completions",
    "Supervision": "client.supervisor",
    "SyncClient": "client.sync.client",
    "TextContent": "wire.types.content",
    "ToolAnnotations": "wire.types.tools",
    "ToolError": "wire.errors",
    "ToolResult": "server.tools.results",
    "Workload": "auth.authorization_server.workload_identity",
    "WorkloadIdentity": "auth.client.providers",
    "WorkloadPlatform": "auth.authorization_server.workload_identity",
    "files": "server.resources.folder",
    "hash_password": "auth.authorization_server.passwords",
    "hash_secret": "auth.authorization_server.client_metadata",
    "read_config": "client.config.entries",
}

__all__ = [
    "Annotations",
    "Audio",
    "AudioContent",
    "AuthRequired",
    "AuthorizationFailed",
    "AuthorizationServer",
    "CallTimeout",
    "CannotAsk",
    "Change",
    "Client",
    "ClientCredentials",
    "Command",
    "Completion",
    "Concurrency",
    "ConfigError",
    "ConnectionEnded",
    "ConnectionLost",
    "Conversation",
    "Context",
    "Declined",
    "Denied",
    "EmbeddedResource",
    "EnterpriseManaged",
    "Exchange",
    "File",
    "HandshakeFailed",
    "Host",
    "HostTools",
    "Icon",
    "IdentityProvider",
    "Image",
    "ImageContent",
    "InterlockError",
    "Introspection",
    "IssuerApp",
    "Item",
    "Keepalive",
    "KnownClient",
    "LoginRequired",
    "OAuth",
    "OutcomeUnknown",
    "LocalError",
    "NotOpen",
    "Patience",
    "PeerClosed",
    "Policy",
    "Principal",
    "PromptMessage",
    "Protection",
    "Rate",
    "RateLimits",
    "Refused",
    "RemoteError",
    "ResourceContents",
    "ResourceLink",
    "ResourceNotFound",
    "Rule",
    "Seat",
    "Server",
    "StateChange",
    "SpawnFailed",
    "Suggestions",
    "Supervision",
    "SyncClient",
    "TextContent",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "Workload",
    "WorkloadIdentity",
    "WorkloadPlatform",
    "__version__",
    "files",
    "hash_password",
    "hash_secret",
    "read_config",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'interlock' has no attribute {name!r}")
    value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
