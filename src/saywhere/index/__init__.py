"""A library of photographs one can search: photos, the places in them, and what people said about them.

update("photos")                                                # looks at what is new or changed
library = Library("photos")
search(library, Query(seer.texts(["a dog with a frisbee"])[0]))  # photos, each with a box
"""

from saywhere.index.library import Library
from saywhere.index.search import Hit, Query, search
from saywhere.index.seen import checked_seeing
from saywhere.index.update import Updated, update

__all__ = ["Hit", "Library", "Query", "Updated", "checked_seeing", "search", "update"]
