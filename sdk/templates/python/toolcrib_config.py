"""Values of `config` under [plugin.NAME] in the settings of the host. Comes with `--needs config`."""

from wit_world.imports import store


def get(name):
    """Returns the value of a name, or None. In place of a secret it is a word that stands for it in requests."""
    return store.get(str(name))
