"""What a study found: preferences with intervals, sign tests, agreement between participants, and a check on the sides.

The only place where ratings meet the names of the models. Shares have Wilson intervals of 95 %; tests are exact,
two-sided, against one half, and leave ties out. Ratings by one person, or of one pair, are not independent, so the
test over all ratings is too sure of itself where they repeat; those over participants and over items are not.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, median, variance

import msgspec
from scipy.stats import binomtest

from saywhere.atomic import write_atomic
from saywhere.studio.study import Side, Study, read_study
from saywhere.studio.study_ratings import Rating, RatingState, read_ratings

CSV, SUMMARY = "results.csv", "summary.json"
COLUMNS = ("participant", "item", "word", "left", "right", "rating", "preferred", "strength", "seconds", "at")
_SURE = 0.95


class Share(msgspec.Struct, frozen=True):
    """count out of total, with the Wilson interval of the share; without any, there is no share."""

    count: int
    total: int
    share: float | None
    low: float | None
    high: float | None


class SignTest(msgspec.Struct, frozen=True):
    """a, b: how often each model was preferred. ties: left out. p: two-sided; none without a preference."""

    a: int
    b: int
    ties: int
    p: float | None


class Preference(msgspec.Struct, frozen=True):
    """How often one model was found more reasonable. of_all: of all ratings, ties among them."""

    model: str
    clearly: int
    slightly: int
    of_all: Share


class SideCheck(msgspec.Struct, frozen=True):
    """Whether people liked a side. left: of the ratings that are no ties. a_was_left: of all."""

    left: Share
    p: float | None
    a_was_left: Share


class RatingAgreement(msgspec.Struct, frozen=True):
    """Of items that several people rated. pairs: of two ratings of one item.

    same: both for one model, or both equal. opposite: one for each model. alpha: Krippendorff's, with the scale's
    numbers; 1 is perfect, 0 is chance; none if nobody differs anywhere.
    """

    items: int
    pairs: int
    same: Share
    opposite: Share
    alpha: float | None


class Participant(msgspec.Struct, frozen=True):
    """One person's ratings. seconds: the median of what one took."""

    code: str
    ratings: int
    finished: bool
    preferred_a: int
    equal: int
    preferred_b: int
    left: int
    right: int
    seconds: float | None


class StudySummary(msgspec.Struct, frozen=True):
    """All of it. mean_towards_b: −2 … 2. preferring_b: of the ratings that are no ties.

    over_ratings: each rating counts. over_participants: each participant counts once, for the model that he or she
    preferred more often. over_items: each item counts once, for the model that its mean rating is for.
    passed_over: lines of the file, and ratings of items that are not in the study, that do not count.
    """

    title: str
    models: dict[str, str]
    items: int
    rated_items: int
    ratings: int
    a: Preference
    b: Preference
    equal: Share
    preferring_b: Share
    mean_towards_b: float | None
    over_ratings: SignTest
    over_participants: SignTest
    over_items: SignTest
    sides: SideCheck
    agreement: RatingAgreement
    participants: list[Participant]
    passed_over: list[str]


def summarise(study: Study, given: RatingState) -> StudySummary:
    """What the ratings say. Those of participants who have not finished count, too."""
    known = [rating for rating in given if rating.item in study.items]
    unknown = [rating for rating in given if rating.item not in study.items]
    passed_over = [str(line) for line in given.bad_lines]
    passed_over += [f"{one.participant} rated {one.item}, which is not in the study" for one in unknown]
    towards_b = [rating.towards_b for rating in known]
    by_item = _grouped(known, lambda one: one.item)
    by_participant = _grouped(known, lambda one: one.participant)
    over_ratings = sign_test(towards_b)
    return StudySummary(
        title=study.title,
        models={"a": study.models["a"], "b": study.models["b"]},
        items=len(study.items),
        rated_items=len(by_item),
        ratings=len(known),
        a=_preference(study, "a", [-value for value in towards_b]),
        b=_preference(study, "b", towards_b),
        equal=share(over_ratings.ties, len(known)),
        preferring_b=share(over_ratings.b, over_ratings.a + over_ratings.b),
        mean_towards_b=fmean(towards_b) if towards_b else None,
        over_ratings=over_ratings,
        over_participants=sign_test(_net(ratings) for ratings in by_participant.values()),
        over_items=sign_test(sum(one.towards_b for one in ratings) for ratings in by_item.values()),
        sides=_sides(known),
        agreement=agreement([[one.towards_b for one in ratings] for ratings in by_item.values()]),
        participants=[_participant(code, ratings, study) for code, ratings in sorted(by_participant.items())],
        passed_over=passed_over,
    )


def share(count: int, total: int) -> Share:
    """A share with its Wilson interval."""
    if not total:
        return Share(0, 0, None, None, None)
    interval = binomtest(count, total).proportion_ci(_SURE, method="wilson")
    return Share(count, total, count / total, float(interval.low), float(interval.high))


def sign_test(towards_b: Iterable[float]) -> SignTest:
    """Whether one model is preferred: above 0 is for b, below for a, 0 is a tie."""
    values = list(towards_b)
    a, b = sum(value < 0 for value in values), sum(value > 0 for value in values)
    return SignTest(a, b, len(values) - a - b, float(binomtest(b, a + b).pvalue) if a + b else None)


def agreement(items: Sequence[Sequence[int]]) -> RatingAgreement:
    """How alike people rate. items: for each, the ratings −2 … 2 towards b of different people."""
    shared = [ratings for ratings in items if len(ratings) > 1]
    pairs = [pair for ratings in shared for pair in combinations(ratings, 2)]
    same = sum(_sign(one) == _sign(other) for one, other in pairs)
    opposite = sum(one * other < 0 for one, other in pairs)
    alpha = _alpha(shared)
    return RatingAgreement(len(shared), len(pairs), share(same, len(pairs)), share(opposite, len(pairs)), alpha)


def _alpha(shared: Sequence[Sequence[int]]) -> float | None:
    """Krippendorff's alpha for intervals: 1 − how far people differ within items / how far they do among all."""
    everything = [value for ratings in shared for value in ratings]
    expected = _spread(everything)
    if not expected:
        return None
    # An item weighs as much as it has ratings.
    observed = sum(len(ratings) * _spread(ratings) for ratings in shared) / len(everything)
    return 1 - observed / expected


def _spread(values: Sequence[int]) -> float:
    """The mean squared difference of two of them."""
    return 2 * float(variance(values)) if len(values) > 1 else 0.0


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _net(ratings: Sequence[Rating]) -> int:
    return sum(_sign(one.towards_b) for one in ratings)


def _grouped(ratings: Iterable[Rating], name: Callable[[Rating], str]) -> dict[str, list[Rating]]:
    groups: defaultdict[str, list[Rating]] = defaultdict(list)
    for rating in ratings:
        groups[name(rating)].append(rating)
    return dict(groups)


def _preference(study: Study, side: Side, towards: Sequence[int]) -> Preference:
    clearly, slightly = towards.count(2), towards.count(1)
    return Preference(study.models[side], clearly, slightly, share(clearly + slightly, len(towards)))


def _sides(ratings: Sequence[Rating]) -> SideCheck:
    """Above 0 is for the right, as it was shown."""
    test = sign_test(rating.rating for rating in ratings)
    a_was_left = sum(rating.left == "a" for rating in ratings)
    return SideCheck(share(test.a, test.a + test.b), test.p, share(a_was_left, len(ratings)))


def _participant(code: str, ratings: Sequence[Rating], study: Study) -> Participant:
    test, sides = sign_test(one.towards_b for one in ratings), sign_test(one.rating for one in ratings)
    timed = [one.seconds for one in ratings if one.seconds is not None]
    return Participant(
        code,
        len(ratings),
        len(ratings) == len(study.items),
        test.a,
        test.ties,
        test.b,
        sides.a,
        sides.b,
        median(timed) if timed else None,
    )


def results_csv(study: Study, given: RatingState) -> str:
    """One row for each rating that counts. rating: above 0 is for the right. preferred: a model's name, or equal."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(COLUMNS)
    for one in given:
        item = study.items.get(one.item)
        if item is not None:
            table.writerow(_row(one, item.word or item.answer, study.models))
    return written.getvalue()


def _row(one: Rating, word: str, models: Mapping[Side, str]) -> list[object]:
    right: Side = "b" if one.left == "a" else "a"
    preferred = models[one.left] if one.rating < 0 else models[right] if one.rating > 0 else "equal"
    seconds = "" if one.seconds is None else f"{one.seconds:.2f}"
    sides = (models[one.left], models[right])
    return [one.participant, one.item, word, *sides, one.rating, preferred, abs(one.rating), seconds, one.at]


def summary_json(summary: StudySummary) -> bytes:
    return msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"


def write_results(folder: str | Path) -> StudySummary:
    """Write results.csv and summary.json into the folder of a study, from what is rated so far."""
    study = read_study(folder)
    given = read_ratings(study.folder)
    summary = summarise(study, given)
    for name, content in ((CSV, results_csv(study, given).encode()), (SUMMARY, summary_json(summary))):
        with write_atomic(study.folder / name) as file:
            file.write(content)
    return summary
