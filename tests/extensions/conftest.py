"""Commands of extensions run as those of the core."""

from tests.cli.conftest import shell  # noqa: F401
