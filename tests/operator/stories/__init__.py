"""The stories. The first line of a module's text is its title."""

import importlib
import pkgutil


def all_stories():
    return [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
