"""What kind of data a file holds: by its first bytes where they tell, else by its name. The same on every machine."""

from __future__ import annotations

from ..wire.lazy_regex import pattern

__all__ = ["guess_type", "is_mime_type", "is_text_type"]

_TOKEN = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"
_MIME = pattern(rf"{_TOKEN}/{_TOKEN}(?:\s*;\s*{_TOKEN}=(?:{_TOKEN}|\"[^\"\\\r\n]*\"))*")

_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
_INSIDE = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AIFF": "audio/aiff"}  # of RIFF and FORM files, at 8
_BRANDS = {b"avif": "image/avif", b"heic": "image/heic", b"M4A ": "audio/mp4"}  # of MP4 files, at 8
_MPEG_FRAMES = (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
_ZIPPED = ("docx", "xlsx", "pptx", "odt", "ods", "epub", "jar")  # more than an archive to their users

_SUFFIXES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "avif": "image/avif",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "oga": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "txt": "text/plain",
    "log": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "htm": "text/html",
    "css": "text/css",
    "py": "text/x-python",
    "js": "text/javascript",
    "json": "application/json",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "gz": "application/gzip",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "epub": "application/epub+zip",
    "jar": "application/java-archive",
}
_TEXTS = {"application/json", "application/xml", "application/yaml", "application/toml", "application/javascript"}


def guess_type(data: bytes, name: str = "") -> str | None:
    """The MIME type of `data`, called `name`; None where neither tells."""
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    found = _by_beginning(data)
    if found is None or (found == "application/zip" and suffix in _ZIPPED):
        return _SUFFIXES.get(suffix, found)
    return found


def _by_beginning(data: bytes) -> str | None:
    for beginning, kind in _BEGINNINGS:
        if data.startswith(beginning):
            return kind
    if data[:4] in (b"RIFF", b"FORM"):
        return _INSIDE.get(data[8:12])
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12])
    if data[:2] in _MPEG_FRAMES:
        return "audio/mpeg"
    return "image/svg+xml" if data[:512].lstrip().startswith(b"<svg") else None


def is_mime_type(text: str) -> bool:
    """`type/subtype`, with parameters or without (RFC 6838 §4.2, RFC 2045 §5.1)."""
    return len(text) <= 512 and _MIME.fullmatch(text) is not None


def is_text_type(mime_type: str) -> bool:
    """Is data of this type for reading as text?"""
    bare = mime_type.partition(";")[0].strip().lower()
    return bare.startswith("text/") or bare in _TEXTS or bare.endswith(("+json", "+xml", "+yaml"))
