"""The stories, each named after the faults that it tells of. The first line of a module's text is its title."""

import importlib
import pkgutil


def all_stories():
    """In the order of their names, which begin with the number of the fault."""
    return [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
