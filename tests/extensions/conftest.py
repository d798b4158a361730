"""Commands of extensions run as those of the core."""

from tests.cli.conftest import script, shell, toys  # noqa: F401
