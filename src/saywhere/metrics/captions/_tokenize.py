"""Penn-Treebank-style words of an English caption, as the caption metrics of COCO split them, without Java.

Published BLEU, ROUGE-L, CIDEr and METEOR scores are on captions that went through one certain tokenizer: the
Stanford PTB tokenizer 3.4.1 in lower case, and then the removal of a fixed list of punctuation. This module gives the
same words. Its rules were fitted to the answers of that tokenizer to some millions of made-up strings, and are held
against it on real captions by the benchmark.

Like the original it always takes the rule that reaches furthest from where it stands.
Three habits of the original surprise: brackets stay, as the words ``-lrb-`` and ``-rrb-``; ``!!`` and ``??`` stay
although ``!`` and ``?`` go; and ``1 1/2`` is one word with a no-break space inside.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Words that keep the full stop after them: always, only when capitalised, only before a number.
_ABBREVIATION = """adj adm adv al ala alex apr ariz assn asst atty aug ave bancorp bhd bldg blvd brig bros calif capt
    cf cie cmdr co col colo conn corp cos cpl ct dak dec dept det dr drs elec ens esq est etc ext feb fla fri ft ga gen
    gov govs hon inc ind insp intl invt jan jos jr jul jun kan kans ky lt ltd maj mar md messrs mfg mich minn mlle mme
    mo mon mont mr mrs ms msgr mt mtg natl neb nev nov oct okla penn pfc ph plc ppte ppty pres prof pte ptes pty ptys
    pvt rd rep reps rev rt sen sens sep sept seq sfc sgt spc sq sr st ste supt sys tel tenn thu thurs tue tues univ va
    vs vt wed wis wisc wm wyo"""
_ABBREVIATION_IF_CAPITAL = "Ark Az Del Ill La Mass Miss Ore Pa Tex Wash"
_ABBREVIATION_BEFORE_NUMBER = "art ca fig figs no nos op pp prop"
# A single letter keeps its full stop too ("J. Smith"), but not before these, nor at the end of the caption: there
# the original looks at the first word of the next caption, which in most sets is "A".
_SENTENCE_START = """About According After An As At A But Earlier Here Her However He If In It Last Many More Now Once
    One Other Our She Since Some So Such That Their There These They Then The This We What When While Yet You"""

# Written as one word, counted as two.
_TWO_WORDS = {
    "cannot": ("can", "not"),
    "gonna": ("gon", "na"),
    "gotta": ("got", "ta"),
    "wanna": ("wan", "na"),
    "lemme": ("lem", "me"),
    "gimme": ("gim", "me"),
    "'tis": ("'t", "is"),
    "'twas": ("'t", "was"),
}

_DROPPED = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";", ""])

_QUOTES = str.maketrans(
    {"\x91": "`", "‘": "`", "‛": "`", "‹": "`", "\x92": "'", "’": "'", "›": "'"}
    | {"\x93": "``", "“": "``", "«": "``", "\x94": "''", "”": "''", "»": "''"}
)
_REWRITTEN = (
    dict.fromkeys(
        ['"', "&quot;", "&nbsp;", "\x85", "…", "\x96", "\x97", "–", "—", "―", "&mdash;", "&ndash;", "&md;"], ""
    )
    | {"[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-", "&lt;": "<", "&gt;": ">"}
    | {"¢": "cents", "£": "#", "¤": "$", "\x80": "$", "₠": "$", "€": "$"}
    | {"¼": "1/4", "½": "1/2", "¾": "3/4", "⅓": "1/3", "⅔": "2/3"}
)
_INSIDE = str.maketrans({"(": "-lrb-", ")": "-rrb-", " ": "\u00a0", "\u00ad": ""})

_LETTER = (
    r"(?:[^\W\d_²³¹¼-¾\u0560\u0588\u2070\u2074-\u2089\u2150-\u2182\u2185-\u218b\u2460-\u2b73]"
    r"|[\u00ad\u02c2-\u02c5\u02d2-\u02df\u02e5-\u02eb\u02ed\u02ef-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065e"
    r"\u0900-\u0903\u093c\u093e-\u094e\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]|&[aeiouAEIOU](?:acute|grave|uml);)"
)
_APOSTROPHE = r"(?:['\u0092\u2019]|&apos;)"
# What may be in these is bounded, so that a text of nothing but odd characters takes no longer than others.
_IN_URL = r"[^\s\"<>|(){}]{1,256}"
_URL_END = r"[^\s\"<>|.!?(){},-]"
_URL_PART = r"[^\s\"<>|.!?(){},]{1,256}\."
_SITE_PART = r"[^\s\"`'<>|.!?(){},-_$]{1,256}\."
_MAIL_NAME = r"[A-Za-z0-9][^\s\"<>|()\u00a0{}]{0,256}"
_MAIL_PART = r"[^\s\"<>|(){}.\u00a0]{1,256}"
_TAG_NAME = r"[A-Za-z][A-Za-z0-9:.-]*"
_TAG_VALUE = r"\s*=\s*(?:'[^']{0,256}'|\"[^\"]{0,256}\")"


def _abbreviations() -> str:
    always = "|".join(sorted(_ABBREVIATION.split(), key=len, reverse=True))
    capital = "|".join(f"{word}|{word.upper()}" for word in _ABBREVIATION_IF_CAPITAL.split())
    numbered = "|".join(sorted(_ABBREVIATION_BEFORE_NUMBER.split(), key=len, reverse=True))
    start = "|".join(f"{word[0]}(?i:{word[1:]})" for word in _SENTENCE_START.split())
    initial = rf"[A-Za-z](?!\.(?:\s*$|\s(?:{start})(?:\s|$)))"
    return rf"(?:(?i:{always})|{capital}|{initial}|(?i:{numbered})(?=\.\s*\d))\."


# {L} is a letter, {W} a letter or digit, {'} any apostrophe. A group in a look-ahead counts as reached.
_RULES = (
    # Markup and addresses.
    rf"</?{_TAG_NAME}(?:\s+{_TAG_NAME}(?:{_TAG_VALUE})?)*\s*/?\s*>",
    r"<[!?][A-Za-z-][^>]{0,256}>",
    rf"(?i:https?)://{_IN_URL}{_URL_END}",
    rf"(?:www\.(?:{_URL_PART})+[A-Za-z]{{2,4}}|(?:{_SITE_PART})+(?:com|net|org|edu))(?:/{_IN_URL}{_URL_END})?",
    rf"(?:<(?=[^\s<>]*>))?{_MAIL_NAME}@(?:{_MAIL_PART}\.)*{_MAIL_PART}>?",
    r"@[A-Za-z_][A-Za-z0-9_]*|#{L}+",
    r"{W}+\.(?i:bat|bmp|c|class|cgi|cpp|dll|docx?|exe|gif|gz|h|html?|jar|java|jpe?g|mov|mp3|pdf|php|pl|png|ppt"
    r"|ps|py|sql|tar|txt|wav|x|xml|zip)(?!{W})",
    # Contractions and other words with an apostrophe.
    r"[A-Za-z]*[A-MO-Za-mo-z](?=([nN](?:{'}|[`‘])[tT]))",
    r"[nN](?:{'}|[`‘])[tT]",
    r"(?:'(?i:m|s|d|re|ve|ll)(?![A-Za-z])|(?:’|\x92|&apos;)(?i:m|s|d|re|ve|ll))",
    r"'(?i:tis|twas)(?!{L})",
    r"{'}(?i:em|cause|till?|n{'}|[2-9]0s|n(?=\s|$)|\d\d(?=\s|$))|’[nN]",
    r"(?i:ol|somethin|dunkin|[dlj]){'}(?!(?i:m|s|d|re|ve|ll)(?![A-Za-z]))|[yY]{'}(?=[A-Za-z])(?![smdSMD])",
    r"(?i:c'mon|e{'}er|ev{'}ry|li{'}l|cap{'}n|nat{'}l|o{'}o)",
    r"(?:[dloA-HJ-Z](?:{'}|`){W}{2,}(?:-{W}+)*|n(?:{'}|`){L}{2,})(?<!['’`](?:re|ve|ll|RE|VE|LL))",
    r"[A-Za-z]+[aeiouyAEIOUY](?:{'}|`)[aeiouAEIOU][A-Za-z]*",
    # Words.
    r"{L}{W}*(?:[.!?]{L}{W}*)*",
    r"(?:{W}+|{L}{W}*(?:[.!?]{L}{W}*)*)\.(?=([,;:]))",
    r"[A-Za-z](?:\.[A-Za-z])+\.|(?i:ph|ed)\.[dD]\.",
    _abbreviations(),
    r"[A-Z]+(?:(?:[+&]|&amp;)[A-Z]+)+",
    r"[cC]\+\+|[cCfF]#",
    r"{W}+(?:[_-](?:[dDoOlL]{'})?{W}+)+",
    r"{W}(?:{W}|[.,]){0,256}(?:-(?:[A-Za-z](?:\.[A-Za-z])+\.|(?:[dDoOlL]{'})?{W}+))+",
    r"[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}(?:\\?/[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}){1,2}",
    r"{W}+",
    # Numbers.
    r"[-+]?(?:\d*(?:[.:,\u00ad\u066b\u066c]\d+)+|\d+)",
    r"\d{1,2}[-/]\d{1,2}[-/]\d{2,4}",
    r"(?:\d{1,4}[- \u00a0])?\d{1,4}(?:\\?/|\u2044)\d{1,4}",
    r"(?:\(\d{2,3}\)[ \u00a0]?|(?:\+\+?)?(?:\d{2,4}[- \u00a0])?\d{2,4}[- \u00a0])\d{3,4}[- \u00a0]?\d{3,5}"
    r"|(?:(?:\+\+?)?\d{2,4}\.)?\d{2,4}\.\d{3,4}\.\d{3,5}",
    r"[A-Z]*\$",
    # Faces, dots, dashes, runs of one mark, entities, and any other character that is known.
    r"[<>]?[:;=][-o*']?[()DPdpO0\\{@|\[\]](?!{W})|-_-",
    r"\.{3,5}|(?:\.[ \u00a0]){2,4}\.|[\u0085\u2026]",
    r"-+|[\u0096\u0097\u2013-\u2015]|&(?i:mdash|ndash|md);",
    r"[?!]+|_+|#+|@+|\*+|>>|<<|\\\*|''|[`\u0091-\u0094‘-‛“”«»‹›]{2}",
    r"&(?:amp|lt|gt|quot|apos|nbsp|#\d+);|&[aeiouAEIOU](?:acute|grave|uml);",
    r"[!-/:-@\[-`{-~\x80\x91-\x94\u00a1-\u00ac\u00ae-\u00b9\u00bb-\u00bf\u00d7\u00f7\u2016-\u2042\u2044"
    r"\u2070-\u208e\u20a0\u20a4\u20ac\u2100-\u214f\u2153-\u215e\u2190-\u2bff\u3001\u3002\uff01-\uffe6]",
)


@lru_cache(maxsize=1)
def _rules() -> list[re.Pattern[str]]:
    """The rules, compiled when the first caption comes: it takes longer than importing the rest."""
    marks = {"{L}": _LETTER, "{W}": rf"(?:{_LETTER}|\d)", "{'}": _APOSTROPHE}
    return [re.compile(re.sub(r"\{[LW']\}", lambda mark: marks[mark[0]], source)) for source in _RULES]


# Almost all words of almost all captions: nothing but letters up to a space, a comma or the end.
_PLAIN_WORD = re.compile(r"([A-Za-z]+)(?:,? |,?$|\.$)")
_QUOTED = re.compile(r"n?[`'\x91-\x94‘-‛“”«»‹›]+(?:[msdt]|re|ve|ll)?")
_NOT_PLAIN = frozenset(_TWO_WORDS) | frozenset(_ABBREVIATION.split())


def ptb_words(text: str) -> list[str]:
    """The words of a caption, lower-case, without punctuation.

    >>> ptb_words("The dog's bowl, isn't it?")
    ['the', 'dog', "'s", 'bowl', 'is', "n't", 'it']
    """
    text = " ".join(text.split())
    words: list[str] = []
    at = 0
    while at < len(text):
        plain = _PLAIN_WORD.match(text, at)
        if plain and (word := plain[1].lower()) not in _NOT_PLAIN:
            at = plain.end()
            words.append(word)
        else:
            word, at = _furthest(text, at)
            words.extend(part for part in _normal(word) if part not in _DROPPED)
    return words


def _normal(word: str) -> tuple[str, ...]:
    """How a word is written in the output; two words where one was written for two."""
    word = word.lower()
    if word in _REWRITTEN:
        return (_REWRITTEN[word],)
    if word.startswith(("..", "--", ". ")):
        return ()
    word = word.replace("&amp;", "&").replace("&apos;", "'")
    if _QUOTED.fullmatch(word):
        return (word.translate(_QUOTES),)
    return _TWO_WORDS.get(word) or (word.translate(_INSIDE),)


def _furthest(text: str, at: int) -> tuple[str, int]:
    """The word of the rule that reaches furthest from `at`, and its end; "" for a character that no rule knows."""
    word, reached, end = "", at, at + 1
    for rule in _rules():
        match = rule.match(text, at)
        if match and match.end(match.lastindex or 0) > reached:
            word, reached, end = match[0], match.end(match.lastindex or 0), match.end()
    return word, end
