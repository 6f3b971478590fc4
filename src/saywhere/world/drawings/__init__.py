"""How each kind of thing is drawn."""

from saywhere.world.drawings import animals, bathroom, furniture, nature, outdoors, people, tabletop, vehicles
from saywhere.world.drawings._style import Drawing, Style

DRAWINGS: dict[str, Drawing] = {
    **people.DRAWINGS,
    **animals.DRAWINGS,
    **vehicles.DRAWINGS,
    **nature.DRAWINGS,
    **outdoors.DRAWINGS,
    **furniture.DRAWINGS,
    **bathroom.DRAWINGS,
    **tabletop.DRAWINGS,
}

__all__ = ["DRAWINGS", "Drawing", "Style"]
