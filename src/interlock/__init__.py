"""Interlock: the Model Context Protocol in all its revisions, for servers, clients and hosts.

    from interlock import Server, Client

The names below are loaded when they are first used, so that a server does not pay for the client and vice versa.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .auth.clients import KnownClient, hash_secret
    from .auth.issuer import AuthorizationServer, IdentityProvider
    from .auth.passwords import hash_password
    from .auth.plans import ClientCredentials, EnterpriseManaged, OAuth, WorkloadIdentity
    from .auth.protection import Introspection, Protection
    from .auth.workloads import Workload, WorkloadPlatform
    from .client.client import Client
    from .client.completing import Completion
    from .client.config import read_config
    from .client.config_text import ConfigError
    from .client.listening import Change
    from .client.repeating import OutcomeUnknown
    from .client.supervisor import StateChange, Supervision
    from .client.sync_client import SyncClient
    from .host.conversation import Conversation
    from .host.deeds import Denied
    from .host.host import Host
    from .host.host_tools import HostTools
    from .host.members import Seat
    from .host.policy import Policy, Rule
    from .server.blocks import Audio, File, Image
    from .server.bounds import Concurrency
    from .server.completions import Suggestions
    from .server.context import Context
    from .server.files import files
    from .server.questions import Declined
    from .server.rate_limits import Rate, RateLimits
    from .server.results import ToolResult
    from .server.server import Server
    from .server.visibility import Item
    from .transport.child import Command
    from .transport.issuer_app import IssuerApp
    from .transport.keepalive import Keepalive
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
    from .wire.link import Patience
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
    "Audio": "server.blocks",
    "AudioContent": "wire.types.content",
    "AuthRequired": "wire.errors",
    "AuthorizationFailed": "wire.errors",
    "AuthorizationServer": "auth.issuer",
    "CallTimeout": "wire.errors",
    "CannotAsk": "wire.errors",
    "Change": "client.listening",
    "Client": "client.client",
    "ClientCredentials": "auth.plans",
    "Command": "transport.child",
    "Completion": "client.completing",
    "Concurrency": "server.bounds",
    "ConfigError": "client.config_text",
    "ConnectionEnded": "wire.errors",
    "ConnectionLost": "wire.errors",
    "Conversation": "host.conversation",
    "Context": "server.context",
    "Declined": "server.questions",
    "Denied": "host.deeds",
    "EmbeddedResource": "wire.types.content",
    "EnterpriseManaged": "auth.plans",
    "Exchange": "wire.exchange",
    "File": "server.blocks",
    "HandshakeFailed": "wire.errors",
    "Host": "host.host",
    "HostTools": "host.host_tools",
    "Icon": "wire.types.common",
    "IdentityProvider": "auth.issuer",
    "Image": "server.blocks",
    "ImageContent": "wire.types.content",
    "InterlockError": "wire.errors",
    "Introspection": "auth.protection",
    "IssuerApp": "transport.issuer_app",
    "Item": "server.visibility",
    "Keepalive": "transport.keepalive",
    "KnownClient": "auth.clients",
    "LoginRequired": "wire.errors",
    "OAuth": "auth.plans",
    "OutcomeUnknown": "client.repeating",
    "LocalError": "wire.errors",
    "NotOpen": "wire.errors",
    "Patience": "wire.link",
    "PeerClosed": "wire.errors",
    "Policy": "host.policy",
    "Principal": "wire.exchange",
    "PromptMessage": "wire.types.prompts",
    "Protection": "auth.protection",
    "Rate": "server.rate_limits",
    "RateLimits": "server.rate_limits",
    "Refused": "wire.errors",
    "RemoteError": "wire.errors",
    "ResourceContents": "wire.types.content",
    "ResourceLink": "wire.types.content",
    "ResourceNotFound": "wire.errors",
    "Rule": "host.policy",
    "Seat": "host.members",
    "Server": "server.server",
    "StateChange": "client.supervisor",
    "SpawnFailed": "wire.errors",
    "Suggestions": "server.completions",
    "Supervision": "client.supervisor",
    "SyncClient": "client.sync_client",
    "TextContent": "wire.types.content",
    "ToolAnnotations": "wire.types.tools",
    "ToolError": "wire.errors",
    "ToolResult": "server.results",
    "Workload": "auth.workloads",
    "WorkloadIdentity": "auth.plans",
    "WorkloadPlatform": "auth.workloads",
    "files": "server.files",
    "hash_password": "auth.passwords",
    "hash_secret": "auth.clients",
    "read_config": "client.config",
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
