"""The words of captions, held against the Java tokenizer of the COCO evaluation."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.metrics.captions import ptb_words

needs_java_tokenizer = pytest.mark.skipif(
    shutil.which("java") is None or importlib.util.find_spec("pycocoevalcap") is None,
    reason="needs Java and the package pycocoevalcap (pip install 'saywhere[java]')",
)

# Caption, and its words joined by spaces. "␣" stands for the no-break space that joins a number of several parts.
HARD_CASES = {
    "A man riding a wave.": "a man riding a wave",
    "   Two   dogs,\n one cat ;  no fish !": "two dogs one cat no fish",
    "can't won't don't isn't DON'T": "ca n't wo n't do n't is n't do n't",
    "I'm you're they've he'd she'll it's": "i 'm you 're they 've he 'd she 'll it 's",
    "don’t it’s they’re o’clock ‘hello’": "do n't it 's they 're o’clock hello",
    "cannot gonna Gotta wanna lemme gimme": "can not gon na got ta wan na lem me gim me",
    "'tis 'twas 'em 'cause 'til rock 'n' roll": "'t is 't was 'em 'cause 'til rock 'n' roll",
    "the dog's bone, the dogs' bones, James' hat": "the dog 's bone the dogs bones james hat",
    "y'all o'clock O'Brien ma'am d'Artagnan jack-o'-lantern": "y' all o'clock o'brien ma'am d'artagnan jack-o lantern",
    "the '90s and the 90's in '08": "the '90s and the 90 's in '08",
    "\"hello\" 'hello' ``hello'' “hello” «hello»": "hello hello hello hello hello",
    "a - b -- c --- d a—b a – b": "a b c d a b a b",
    "well-known two-year-old U.S.-based -a a-": "well-known two-year-old u.s.-based a a",
    "wait... wait.... a . . . b … c": "wait wait a b c",
    "$5.00 5,000 1,000,000.50 .5 -5 5% #1 US$5": "$ 5.00 5,000 1,000,000.50 .5 -5 5 % # 1 us$ 5",
    "£5 €5 ¥5 5¢": "# 5 $ 5 ¥ 5 5 cents",
    "10:30 10:30am 3pm 3 p.m. 24/7 6ft 4x4": "10:30 10:30 am 3pm 3 p.m. 24/7 6ft 4x4",
    "1/2 1 1/2 3/4-inch 9/11 12/25/2014": "1/2 1␣1/2 3/4-inch 9/11 12/25/2014",
    "½ a cup, 1½ cups, ¼, ⅓": "1/2 a cup 1 1/2 cups 1/4 1/3",
    "call 555-1234 or (555) 555-1234": "call 555-1234 or -lrb-555-rrb-␣555-1234",
    '5\'10" tall and 10" wide': "5 10 tall and 10 wide",
    "http://www.google.com/a?b=c www.a.com a.org me@x.com": "http://www.google.com/a?b=c www.a.com a.org me@x.com",
    "@user #hashtag #1": "@user #hashtag # 1",
    "e.g. i.e. etc. U.S. Ph.D. a.m.": "e.g. i.e. etc. u.s. ph.d. a.m.",
    "Mr. Smith at 5th Ave. and Main St.": "mr. smith at 5th ave. and main st.",
    "No. 5 is no. The no. 7": "no. 5 is no the no. 7",
    "J. Smith. Plan B. The end is near T.": "j. smith plan b the end is near t",
    "in. ft. approx. min.": "in ft. approx min",
    "AT&T black & white a&b &amp; &lt;b&gt;": "at&t black & white a & b & < b >",
    "(a) [b] {c} a(b)c": "-lrb- a -rrb- -lsb- b -rsb- -lcb- c -rcb- a -lrb- b -rrb- c",
    '<unk> <b>bold</b> < 5 > 3 <a href="x y">': '<unk> <b> bold </b> < 5 > 3 <a␣href="x␣y">',
    "man/woman and/or w/o w/ a / b his/her/their/our": "man/woman and/or w/o w / a / b his/her/their / our",
    "hello!!! what?! no? yes!": "hello !!! what ?! no yes",
    ":) :-( ;P =D <3": ":-rrb- :--lrb- ;p =d < 3",
    "man.the man,the man;the man:the man?the": "man.the man the man the man the man?the",
    "a_b c++ C# a*b a+b 5=5 ~ ^ | \\": "a_b c++ c# a * b a + b 5 = 5 ~ ^ | \\",
    "café naïve Ünïcode ♥ ™ 5°C": "café naïve ünïcode ♥ ™ 5 ° c",
    "a 😀 smile, a😀b 👩‍👩‍👧": "a smile a b",
    "person´s 'STOP' sign": "person ´ s stop sign",
    "foo.jpg node.js .net": "foo.jpg node.js net",
    "colour grey theatre": "colour grey theatre",
    "": "",
    " ... ": "",
}


@pytest.mark.parametrize(("caption", "words"), HARD_CASES.items())
def test_a_hard_caption_is_split_as_listed(caption: str, words: str) -> None:
    assert " ".join(ptb_words(caption)) == words.replace("␣", "\u00a0")


def _java_words(captions: list[str]) -> list[str]:
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    # A line "A" between the captions: the last full stop of one depends on how the next begins.
    lines = [line for caption in captions for line in (caption, "A")]
    found = PTBTokenizer().tokenize({i: [{"caption": line}] for i, line in enumerate(lines)})
    return [found[2 * i][0] for i in range(len(captions))]


@needs_java_tokenizer
def test_the_list_of_hard_captions_says_what_java_says(capfd: pytest.CaptureFixture[str]) -> None:
    captions = list(HARD_CASES)
    assert _java_words(captions) == [words.replace("␣", "\u00a0") for words in HARD_CASES.values()]


@needs_java_tokenizer
def test_real_captions_are_split_as_by_java(shared: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    notes = json.loads(shared("data/coco_val/captions_val2017.json").read_text(encoding="utf-8"))["annotations"]
    texts = [note["caption"] for note in notes]
    odd = [text for text in texts if not re.fullmatch(r"[A-Za-z ,]*\.?\s*", text)]
    captions = [*odd, *texts[:1000]]
    assert [" ".join(ptb_words(caption)) for caption in captions] == _java_words(captions)


@given(st.text())
def test_any_text_gives_lower_case_words_without_blanks_or_plain_punctuation(text: str) -> None:
    for word in ptb_words(text):
        assert word == word.lower()
        assert word
        assert " " not in word
        assert word not in {".", ",", "?", "!", ":", ";", "-", "--", "...", "'", "''", "`", "``"}


@given(st.lists(st.sampled_from(["dog", "a", "Red", "surfboards", "I", "walking"]), max_size=12))
def test_plain_words_are_only_put_in_lower_case(words: list[str]) -> None:
    assert ptb_words(" ".join(words)) == [word.lower() for word in words]


WORDS_OF_A_THOUSAND = {"&": 1000, "<a ": 2000, "a@": 4, "1 ": 1000, "a,": 1000, "'": 0, "a.": 1, "😀": 0, "http://": 79}


@pytest.mark.parametrize(("unit", "words"), WORDS_OF_A_THOUSAND.items())
def test_a_monstrous_caption_is_split_like_any_other(unit: str, words: int) -> None:
    # `make bench` shows that the time grows in proportion.
    assert len(ptb_words(unit * 1000)) == words
