"""The version of this package, read by the build and by `interlock version`."""

__version__ = "0.1.0"
