"""Interlock: the Model Context Protocol in all its revisions, for servers, clients and hosts.

    from interlock import Server, Client

The names below are loaded when they are first used, so that a server does not pay for the client and vice versa.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .auth.clients import KnownClient as KnownClient
    from .auth.clients import hash_secret as hash_secret
    from .auth.issuer import AuthorizationServer as AuthorizationServer
    from .auth.issuer import IdentityProvider as IdentityProvider
    from .auth.passwords import hash_password as hash_password
    from .auth.plans import ClientCredentials as ClientCredentials
    from .auth.plans import EnterpriseManaged as EnterpriseManaged
    from .auth.plans import OAuth as OAuth
    from .auth.plans import WorkloadIdentity as WorkloadIdentity
    from .auth.protection import Introspection as Introspection
    from .auth.protection import Protection as Protection
    from .auth.workloads import Workload as Workload
    from .auth.workloads import WorkloadPlatform as WorkloadPlatform
    from .client.client import Client as Client
    from .client.completing import Completion as Completion
    from .client.config import read_config as read_config
    from .client.config_text import ConfigError as ConfigError
    from .client.listening import Change as Change
    from .client.repeating import OutcomeUnknown as OutcomeUnknown
    from .client.supervisor import StateChange as StateChange
    from .client.supervisor import Supervision as Supervision
    from .client.sync_client import SyncClient as SyncClient
    from .host.conversation import Conversation as Conversation
    from .host.deeds import Denied as Denied
    from .host.host import Host as Host
    from .host.host_tools import HostTools as HostTools
    from .host.members import Seat as Seat
    from .host.policy import Policy as Policy
    from .host.policy import Rule as Rule
    from .server.blocks import Audio as Audio
    from .server.blocks import File as File
    from .server.blocks import Image as Image
    from .server.bounds import Concurrency as Concurrency
    from .server.completions import Suggestions as Suggestions
    from .server.context import Context as Context
    from .server.files import files as files
    from .server.questions import Declined as Declined
    from .server.rate_limits import Rate as Rate
    from .server.rate_limits import RateLimits as RateLimits
    from .server.results import ToolResult as ToolResult
    from .server.server import Server as Server
    from .server.visibility import Item as Item
    from .transport.child import Command as Command
    from .transport.issuer_app import IssuerApp as IssuerApp
    from .transport.keepalive import Keepalive as Keepalive
    from .wire.errors import AuthorizationFailed as AuthorizationFailed
    from .wire.errors import AuthRequired as AuthRequired
    from .wire.errors import CallTimeout as CallTimeout
    from .wire.errors import CannotAsk as CannotAsk
    from .wire.errors import ConnectionEnded as ConnectionEnded
    from .wire.errors import ConnectionLost as ConnectionLost
    from .wire.errors import HandshakeFailed as HandshakeFailed
    from .wire.errors import InterlockError as InterlockError
    from .wire.errors import LocalError as LocalError
    from .wire.errors import LoginRequired as LoginRequired
    from .wire.errors import NotOpen as NotOpen
    from .wire.errors import PeerClosed as PeerClosed
    from .wire.errors import Refused as Refused
    from .wire.errors import RemoteError as RemoteError
    from .wire.errors import ResourceNotFound as ResourceNotFound
    from .wire.errors import SpawnFailed as SpawnFailed
    from .wire.errors import ToolError as ToolError
    from .wire.exchange import Exchange as Exchange
    from .wire.exchange import Principal as Principal
    from .wire.link import Patience as Patience
    from .wire.types.common import Annotations as Annotations
    from .wire.types.common import Icon as Icon
    from .wire.types.content import AudioContent as AudioContent
    from .wire.types.content import EmbeddedResource as EmbeddedResource
    from .wire.types.content import ImageContent as ImageContent
    from .wire.types.content import ResourceContents as ResourceContents
    from .wire.types.content import ResourceLink as ResourceLink
    from .wire.types.content import TextContent as TextContent
    from .wire.types.prompts import PromptMessage as PromptMessage
    from .wire.types.tools import ToolAnnotations as ToolAnnotations

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
