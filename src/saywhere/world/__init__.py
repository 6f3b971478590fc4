"""A world of simulated scenes: photos with exact truth, narrators, captions, questions, videos. Never evidence about
photographs; a laboratory."""

from saywhere.world.captions import HighLevelCaptions, ObjectCaption, high_level_captions, object_captions
from saywhere.world.dataset import SPLITS, WORLD_VERSION, WorldSettings, make
from saywhere.world.english import kinds_named
from saywhere.world.kinds import CATEGORIES, KINDS, STUFF, Kind
from saywhere.world.making import make_scene, scenes
from saywhere.world.narrators import DATASET_ID, NARRATORS, Narration, narrate, point_again
from saywhere.world.places import PLACES, Place
from saywhere.world.questions import (
    CHANGED_PRIORS,
    MILD_PRIORS,
    TYPES,
    Priors,
    SceneQuestion,
    ask,
    balanced,
    candidates,
    choose,
)
from saywhere.world.referring import SceneReference, references
from saywhere.world.relations import Relation, relations
from saywhere.world.runs import run_lengths
from saywhere.world.scene import Scene, Thing
from saywhere.world.sheet import contact_sheet
from saywhere.world.video import Motion, Video, make_video
from saywhere.world.video_narrators import ActorNarration, VideoNarration, narrate_video

__all__ = [
    "CATEGORIES",
    "CHANGED_PRIORS",
    "DATASET_ID",
    "KINDS",
    "MILD_PRIORS",
    "NARRATORS",
    "PLACES",
    "SPLITS",
    "STUFF",
    "TYPES",
    "WORLD_VERSION",
    "ActorNarration",
    "HighLevelCaptions",
    "Kind",
    "Motion",
    "Narration",
    "ObjectCaption",
    "Place",
    "Priors",
    "Relation",
    "Scene",
    "SceneQuestion",
    "SceneReference",
    "Thing",
    "Video",
    "VideoNarration",
    "WorldSettings",
    "ask",
    "balanced",
    "candidates",
    "choose",
    "contact_sheet",
    "high_level_captions",
    "kinds_named",
    "make",
    "make_scene",
    "make_video",
    "narrate",
    "narrate_video",
    "object_captions",
    "point_again",
    "references",
    "relations",
    "run_lengths",
    "scenes",
]
