"""Does a text read like instructions to a model, or hide something from people? It marks texts, and forbids nothing."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import jsonschema_rs
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from memories.models.memory import Content

_QUOTED = 240  # characters of a passage
_PIECE = 1_000  # characters
_MOST_TOLD = 50_000


class Sign(TextChoices):
    """What a text can read like."""

    OVERRIDE = "override", _("puts earlier instructions aside")
    ORDERS = "orders", _("gives new instructions")
    PERSONA = "persona", _("tells a model who it is or how to act")
    PROMPT = "prompt", _("asks for the system prompt")
    MODE = "mode", _("switches to a mode without rules")
    ROLE = "role", _("imitates the marks of a conversation")
    SECRECY = "secrecy", _("keeps something from the user")
    LEAK = "leak", _("has secrets sent away")
    HIDDEN = "hidden", _("hides characters from people")


@dataclass(frozen=True, slots=True)
class Passage:
    """A place that reads so; the text as a model reads it, without what is invisible."""

    sign: Sign
    text: str


_WHICH = (
    r"(?:all|any|every|each|previous|prior|above|earlier|preceding|foregoing|former|past|existing|your|original|initial|"
    r"system|(?:other|old) system)"
)
_WELCHE = (
    r"(?:alle[nrs]?|sämtliche[nrs]?|jede[nrs]?|bisherige[nrs]?|vorherige[nrs]?|vorige[nrs]?|"
    r"vorangegangene[nrs]?|vorangehende[nrs]?|vorausgehende[nrs]?|obige[nrs]?|oben ?stehende[nrs]?|vorstehende[nrs]?|"
    r"frühere[nrs]?|deine[nrs]?|eure[nrs]?|ursprüngliche[nrs]?|bestehende[nrs]?)"
)
_ORDERS = r"(?:instructions?|prompts?|directives?|directions|guardrails?|context|system messages?|programming)"
_RULES = r"(?:rules?|guidelines?|restrictions?|commands?|constraints?|polic(?:y|ies)|safety measures?|filters?)"
_ANWEISUNGEN = (
    r"(?:(?:[a-zäöü]{0,12}-?)?(?:anweisung(?:en)?|instruktion(?:en)?|prompts?)|befehle?n?|weisungen|"
    r"sicherheits[a-zäöü]{3,12})"
)
_REGELN = r"(?:regeln?|vorgaben?|richtlinien?|beschränkungen|einschränkungen|filter|verbote)"
_MODEL = (
    r"(?:ai|a\.i|ki|llm|gpt(?:-?\d)?|dan|bot|[a-zäöü]{0,16}-?(?:bot|gpt|modell|model|assistant|assistenti?n?)|agent|hacker|"
    r"pira(?:te?|t)|root|superuser|admin|administrator|terminal|interpreter|jailbroken|unrestricted|unfiltered|"
    r"uncensored|uneingeschränkte?r?|unzensierte?r?|ungefilterte?r?)"
)
_DO = (
    r"(?:ignore|disregard|forget|you (?:are|must|will|shall|should)|send|forward|reveal|execute|run|delete|call|do not|"
    r"don['’]t|never|answer|respond|obey|follow|output|print|ignoriere?|vergiss|du (?:bist|musst|sollst|wirst)|sende?|"
    r"schicke?|leite|führe?|lösche?|rufe?|antworte|befolge|verrate|gib|zeige?|nenne)"
)
_USER = r"(?:users?|humans?|operator)"
_NUTZER = r"(?:nutzer(?:in|n|s)?|benutzer(?:in|n|s)?|anwender(?:in|n|s)?|user|menschen)"
_SECRETS = (
    r"(?:(?:all|any|every|your|stored|saved|the user['’]?s|user|aller?|sämtlicher?|deiner?|gespeicherten?|gesamten?|"
    r"geheimen?) ~2(?:passwords?|credentials?|secrets?|logins?|memor(?:y|ies)|passw[oö]rter|zugangsdaten|geheimnisse|"
    r"kennwörter|anmeldedaten|erinnerungen|schlüssel)|(?:this|our|the (?:whole|entire|full)) conversation|"
    r"conversation (?:history|logs?)|chat ?(?:history|logs?)|system ?prompts?|(?:the|our|your) ~1api ?keys?|"
    r"private keys?|access tokens?|environment variables?|unterhaltung(?:en)?|gespräch(?:s?verlauf)?|chat ?verlauf|"
    r"api ?schlüssel|zugangs ?token)"
)
_SEND = (
    r"(?:send|forward|post|upload|e-?mail|transmit|exfiltrate|leak|submit|sende|schicke?|leite|übermittle|übermitteln|"
    r"senden|schicken|lade|poste|übertrage)"
)
_ADDRESS = r"(?:https?:|hxxps?:|www\.|[a-z0-9._+-]+@[a-z0-9-]+\.)[^\s]*"
_NOT = r"(?:do not|don['’]t|never)"

# In these a blank is whatever stands between two words, ~n at most n words, and < and > are the edges of a word. What
# they are written in means the same in Rust and Python: without looking ahead, and for text in any case.
_PATTERNS = {
    Sign.OVERRIDE: (
        (
            r"<(?:ignor(?:e|es|ing)|disregard(?:ing)?|forget(?:ting)?|overrid(?:e|ing)|overrule|bypass(?:ing)?|discard|"
            rf"neglect|set aside|pay no attention to|(?:{_NOT}|stop|no longer) (?:follow(?:ing)?|obey(?:ing)?|"
            rf"comply(?:ing)? with)) (?:~3{_WHICH} ~3(?:{_ORDERS}|{_RULES})>|the ~2system ?prompts?>"
            rf"|~3{_ORDERS} ~2(?:above|before|so far|you (?:were|have been|are|got|received))>"
            r"|(?:everything|all|anything|whatever|what) ~2(?:you (?:were|have been|know|are|ve been|learned)|above|"
            r"before this|prior to this|until now)(?:$|[^a-z\s]| (?:told|instructed|given|taught|and|now)>))"
        ),
        (
            rf"<all (?:{_WHICH} )?(?:{_ORDERS}|restrictions|guidelines) are (?:now |hereby )?"
            r"(?:lifted|void|cancelled|revoked)>"
        ),
        (
            r"<(?:ignorier(?:e|en|t|st)?|übergehe?n?|vergiss|vergiß|vergesst|vergessen|missachte[nt]?|verwirf|verwerfe[nt]?|"
            r"überschreibe?n?|umgehe|halte dich nicht(?: mehr)? an|befolge?n?|beachte) "
            rf"(?:~3{_WELCHE} ~3(?:{_ANWEISUNGEN}|{_REGELN})>|(?:den|deinen) system ?prompt>"
            rf"|die {_ANWEISUNGEN} (?:des|der|deines|deiner|von) (?:systems?|entwicklers?|betreibers?|anbieters?)>"
            r"|~1alles (?:was )?~2(?:vorher(?:ige|gehende)?|bisher(?:ige)?|zuvor|davor|bis jetzt|oben|"
            r"vorangegangene)>)"
        ),
        rf"<(?:befolge|beachte)n? (?:ab sofort |ab jetzt )?keine ~2{_ANWEISUNGEN}>",
        (
            rf"<{_WELCHE} (?:~2{_ANWEISUNGEN} ~3|~1{_REGELN} )(?:zu )?(?:ignorieren|vergessen|missachten|verwerfen|"
            r"nicht (?:mehr )?(?:zu )?(?:befolgen|beachten)|au(?:ß|ss)er acht (?:zu )?lassen|überschreiben)>"
        ),
        (
            rf"<{_WELCHE} ~2{_ANWEISUNGEN} (?:sind|gelten) (?:ab sofort |ab jetzt |hiermit |jetzt |nun )?"
            r"(?:ungültig|aufgehoben|hinfällig|nicht mehr|au(?:ß|ss)er kraft)>"
        ),
    ),
    Sign.ORDERS: (
        (
            r"<(?:new|updated|revised|real|actual|important|urgent) (?:system )?instructions?"
            r"(?: for (?:you|the (?:ai|model|assistant|agent)))?\s?:"
        ),
        (
            r"<your (?:new|real|actual|true|only|updated) (?:instructions?|task|role|orders?|goal|objective|directive) "
            r"(?:is|are|now)>"
        ),
        (
            r"<follow (?:only )?(?:these|the following|my|this) (?:new )?instructions? "
            r"(?:instead|from now|only|exactly|and)>"
        ),
        r"<neuen? (?:system)?(?:anweisung(?:en)?|instruktion(?:en)?)\s?:",
        (
            r"<neuen? (?:anweisung(?:en)?|instruktion(?:en)?) (?:für|an) "
            r"(?:dich|das modell|die ki|den (?:assistenten|agenten))>"
        ),
        (
            r"<(?:deine|ihre) (?:neuen?|wahren?|eigentlichen?|einzigen?) "
            r"(?:anweisung(?:en)?|aufgabe|rolle|instruktion(?:en)?) (?:ist|sind|lautet|lauten)>"
        ),
        r"<(?:dein neuer befehl|dein neues ziel) (?:ist|lautet)>",
        (
            r"<befolge (?:nur (?:noch )?|stattdessen |ab jetzt |ab sofort |ausschließlich )?"
            r"(?:die folgenden|diese|meine|folgende) (?:neuen )?(?:anweisung|instruktion)"
        ),
    ),
    Sign.PERSONA: (
        rf"<you(?: are|['’]re) now ~4(?:{_MODEL}>|in ~2mode>|free (?:of|from) (?:all|any|your)>)",
        r"<you are (?:now )?no longer (?:bound|restricted|limited|an? ~2(?:ai|assistant|model))>",
        (
            rf"<(?:from now on|henceforth) you (?:are ~3{_MODEL}>|(?:act|obey|ignore|behave)>"
            r"|(?:will|must|shall|should) (?:only |always |never )?(?:act|answer|respond|obey|ignore|behave|speak|"
            r"pretend|refuse|comply|follow (?:my|these))>)"
        ),
        r"<from now on (?:obey|ignore|pretend)>",
        (
            rf"<act as (?:if you (?:are|were|have|had) ~3(?:no|{_MODEL})>|dan>"
            r"|(?:an?|my|the) ~2(?:unrestricted|unfiltered|uncensored|jailbroken|evil|"
            r"different (?:ai|model|assistant))>)"
        ),
        rf"<pretend (?:that )?(?:you (?:are|were|have|can)|to be ~3{_MODEL})>",
        rf"<role-?play(?:ing)? as ~3{_MODEL}>|<do anything now>",
        (
            rf"<du bist (?:jetzt|nun|ab jetzt|ab sofort|von nun an|fortan) ~4(?:{_MODEL}>|frei von (?:allen|jeden)>|"
            r"(?:im|in) ~2[a-zäöü-]*modus>|nicht mehr (?:an|gebunden)>)"
        ),
        (
            r"<du bist nicht mehr (?:gebunden|an ~3(?:regeln|vorgaben|anweisungen|richtlinien)|"
            r"eine? ~2(?:ki|assistent))>"
        ),
        (
            r"<(?:ab jetzt|ab sofort|von nun an) (?:antworte(?:st)?|gehorche?(?:st)?|verhältst|verhalte|"
            r"ignoriere?(?:st)?|befolge?(?:st)?|sprichst) (?:du|dich|mir|nur|ausschließlich|immer)>"
        ),
        rf"<(?:ab jetzt|ab sofort|von nun an) bist du ~4{_MODEL}>",
        r"<tue? so als (?:ob du|wärst du|wärest du|seist du|hättest du)>",
        rf"<stelle? dir vor du (?:bist|wärst|wärest|seist|hättest) ~4(?:{_MODEL}|keine)>",
        rf"<(?:verhalte? dich (?:wie|als)|spiele die rolle) ~4{_MODEL}>",
    ),
    Sign.PROMPT: (
        (
            r"<(?:reveal|show|print|output|repeat|leak|disclose|display|dump|recite|tell me|give me|write out|zeige?|"
            r"gib|verrate|nenne|wiederhole|drucke|offenbare|schreibe?) ~4(?:system ?prompts?|"
            r"(?:initial|hidden|internal|secret|original) (?:prompts?|instructions)|"
            r"(?:initialen|versteckten|internen|geheimen|ursprünglichen) (?:prompts?|anweisungen))>"
        ),
        r"<(?:your|deine[nms]?|ihren?) (?:(?:hidden|full|whole|entire|ganzen|vollständigen) )?system ?prompts?>",
        r"<(?:new|updated|override|neuer) system ?prompt>|(?:^|\n)system ?prompt\s?:",
        r"<system ?prompts? ~2(?:ausgeben|anzeigen|verraten|preisgeben|offenlegen|nennen|wiederholen)>",
    ),
    Sign.MODE: (
        (
            r"<(?:enter|enable|activate|switch (?:in)?to|start|go into|you are (?:now )?in|aktiviere|"
            r"wechsle? in(?: den)?|starte|schalte ~3in(?: den)?|du bist (?:jetzt |nun )?im) ~1"
            r"(?:(?:developer|dev|debug|admin|root|maintenance|entwickler|wartungs|admin(?:istrator)?) ?(?:mode|modus)"
            r"(?:$|\s*[.,;:!\n]|\s(?:and|now|und|jetzt)>)"
            r"|(?:dan|god|gott|jailbreak|sudo|unrestricted|unfiltered|uncensored|unzensierter?n?) ?(?:mode|modus)>)"
        ),
        r"<(?:dan|god|jailbreak) mode (?:is |has been |wurde )?(?:now )?(?:enabled|activated|aktiviert)>",
        r"<with developer mode enabled>",
    ),
    Sign.ROLE: (
        (
            r"\x3c\|(?:im_start|im_end|im_sep|system|user|assistant|start_header_id|begin_of_text|eot_id)|\[/?(?:inst|system)\]"
            r"|\x3c\x3c/?sys\x3e\x3e|(?:^|\n)\s*##+\s?(?:system|assistant|instructions?)(?:\s(?:prompt|message))?\s?:"
        ),
        r"\x3c/?(?:system(?:[-_\s]?prompt|[-_\s]?message)?|assistant|instructions?)\x3e",
        r"[\"']role[\"']\s?:\s?[\"'](?:system|assistant)[\"']",
        (
            rf"(?:^|\n)[^a-z0-9\n]*(?:system(?: ?(?:message|nachricht|meldung))?|assistant|ai|assistent)"
            rf"[^a-z0-9\n]?: ?~2{_DO}>"
        ),
    ),
    Sign.SECRECY: (
        (
            rf"<(?:{_NOT}|must not|without) (?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|let|"
            rf"mention(?:ing)? ~4to|reveal(?:ing)? ~4to) (?:the|your|any) {_USER}>"
        ),
        rf"<(?:hide|keep|conceal) (?:this|it|that|these) ~3from (?:the|your) {_USER}>",
        rf"<(?:the|your) {_USER} (?:must|should) (?:not|never) (?:know|learn|find out|notice)>",
        rf"<(?:sage?|erzähle?|verrate|melde) ~2(?:dem|der|den|deine[mnr]) {_NUTZER} ~2(?:nichts?|kein wort)>",
        rf"<(?:teile|informiere|benachrichtige) ~2(?:dem|den|die|deine[mnr]) {_NUTZER} ~3nichts?>",
        rf"<ohne ~1(?:dem|den|die) {_NUTZER} ~3zu (?:sagen|fragen|informieren|benachrichtigen|erwähnen)>",
        rf"<ohne (?:das )?wissen (?:des|der) {_NUTZER}>|<verheimliche ~3(?:dem|der) {_NUTZER}>",
        rf"<(?:der|die) {_NUTZER} (?:darf|soll) ~2(?:nichts|nicht) ~2(?:erfahren|wissen|merken|mitbekommen)>",
    ),
    Sign.LEAK: (
        rf"<{_SEND} ~6{_SECRETS} ~8{_ADDRESS}",
        rf"<{_SEND} ~8{_ADDRESS} ~8{_SECRETS}>",
        rf"<{_SECRETS} ~5(?:to|an|nach|at) ~3{_ADDRESS} ~3(?:senden|schicken|übermitteln|weiterleiten|hochladen)>",
    ),
}

# Of these a text has one, or none of the patterns: few texts are looked at any closer.
_WORDS = (
    r"ignor|disregard|forget|overrid|overrul|bypass|discard|neglect|set aside|attention to|follow|obey|comply|vergiss|"
    r"vergiß|vergess|missacht|verwirf|verwerf|überschreib|übergeh|<umgehe>|halte dich|befolg|beachte|"
    r"(?:ß|ss)er acht>|lifted>|void>|"
    r"cancelled>|revoked>|ungültig|aufgehoben|hinfällig|gelten|sind (?:ab|hiermit|jetzt|nun|nicht|au(?:ß|ss)er)>|"
    r"instructions?|<your (?:new|real|actual|true|only|updated)>|anweisung|instruktion|"
    r"<(?:deine|ihre) (?:neue|wahre|eigentliche|einzige)|<dein neue|"
    r"(?:are|re|from) now>|<no longer|<henceforth>|<act as>|<pretend>|anything now>|"
    r"role-?play|<du bist (?:jetzt|nun|ab|von|fortan|nicht)>|"
    r"<ab jetzt>|<ab sofort>|<von nun>|<tue? so>|<dir vor>|verhalte? dich|<spiele die|"
    r"prompt|mode>|modus>|\x3c(?:\||/|\x3c|system|assist|instruct)|\[/?(?:inst|system)|##|[\"']role[\"']|"
    r"(?:system|message|nachricht|meldung|<ai|assistent|assistant)[^a-z0-9\n]?:|"
    r"<(?:the|your|any) (?:user|human|operator)|<(?:dem|der|den|die|des|deine[mnr]) (?:nutzer|benutzer|anwender|user|"
    r"menschen)|"
    r"https?:|hxxps?:|www\.|[a-z0-9._+-]@[a-z0-9-]"
)

# What a model reads as ordinary letters and people do not see, or see as others.
_INVISIBLE = "\xad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff"
_LOOK_ALIKE = "аеорсухіјѕԁһѵԛԝАВЕКМНОРСТУХІЈЅοαινρτυκεΟΑΙΝΡΤΥΚΕİıɡɩ"
_COMMON = "aeopcyxijsdhvqwABEKMHOPCTYXIJSoaivptukeOAINPTYKEIigi"
_STYLED = (
    "\u017f\u02b0-\u02e4\u1d2c-\u1d6a\u2071-\u209c\u2160-\u217f\u24b6-\u24e9\ufb00-\ufb06\uff21-\uff5a"
    "\U0001d400-\U0001d7ff\U0001f130-\U0001f189"
)
_ACCENTS = "\u0300-\u036f"
# A JSON text may have letters and line breaks escaped; halves of a character stay as they are.
_ESCAPED = re.compile(r"\\u(?![dD][89a-fA-F])([0-9a-fA-F]{4})")
_ODD = (
    rf"[{_INVISIBLE}{_STYLED}{_ACCENTS}]|[\ufe00-\ufe0f]{{3}}|[A-Za-z][{_LOOK_ALIKE}]|[{_LOOK_ALIKE}][A-Za-z]"
    r"|\\u[0-9a-fA-F]|\\[nrt]"
)
_READ = str.maketrans(_LOOK_ALIKE, _COMMON)

# Flags such as that of Scotland are written with tag characters, emoji with joiners and selectors.
_TAG, _FLAG, _JOINER = "\U000e0000-\U000e007f", "\U0001f3f4", "\u200b\u2060-\u2064\ufeff"
_HIDDEN = (
    rf"(?:^|[^{_FLAG}{_TAG}])[{_TAG}]|{_FLAG}[{_TAG}]{{9}}|[\u202d\u202e]|[{_JOINER}\u200c-\u200f]{{4}}"
    rf"|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{{3}}|[{_JOINER}\xad](?:[^{_JOINER}\xad]*[{_JOINER}\xad]){{7}}"
)
# Languages from right to left need marks of direction.
_DIRECTION, _RIGHT_TO_LEFT = "[\u202a\u202b\u2066-\u2069]", "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"

_LETTER = "a-z0-9äöüß"
_SPELLED = {
    " ": f"[^{_LETTER}]+",
    "<": f"(?:^|[^{_LETTER}])",
    ">": f"(?:$|[^{_LETTER}])",
}
_SHORT = re.compile(r"[ <>]|~([0-9])")


def _spelled(pattern: str) -> str:
    """The pattern as regular expressions have it."""
    return _SHORT.sub(
        lambda short: rf"(?:[{_LETTER}]+[^{_LETTER}]+){{0,{short[1]}}}" if short[1] else f"(?:{_SPELLED[short[0]]})",
        pattern,
    )


@cache
def _found_by_rust(pattern: str) -> Callable[[str], bool]:
    """Whether a text has the pattern: linear for any text, and in a fiftieth of the time that Python takes."""
    options = jsonschema_rs.RegexOptions(size_limit=100_000_000, dfa_size_limit=4_000_000)
    return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options).is_valid


def _searched(patterns: Iterable[str]) -> str:
    return f"(?i:{'|'.join(map(_spelled, patterns))})"


# What counts many words is searched by itself: the automaton of several such patterns has too many states.
_SEARCHED = [
    (sign, _searched(part))
    for sign, patterns in _PATTERNS.items()
    for part in (zip(patterns) if sign is Sign.LEAK else [patterns])
]
_ANY_WORD = _searched([_WORDS])
_ANY_WORD_OR_ODD = f"{_ANY_WORD}|{_ODD}"
_UNSEEN = re.compile(f"[{_INVISIBLE}\ufe00-\ufe0f]+")


# What was told of texts before, by their hash, which is keyed anew in each process: the same memories are read again
# and again, and the text itself is not kept.
_told: dict[int, bool] = {}


def is_suspicious(row: Content) -> bool:
    """Whether the texts or tags of a memory or a version read like instructions to a model, or hide something."""
    text = _text_of(row)
    place = hash(text)
    told = _told.get(place)
    if told is None:
        if len(_told) >= _MOST_TOLD:
            _told.clear()
        told = _told[place] = reads_like_orders(text)
    return told


def passages_of(row: Content) -> list[Passage]:
    """The passages that make it so, one of each sign."""
    return passages(_text_of(row))


def _text_of(row: Content) -> str:
    return "\n".join((*row.texts, *row.tag_namen))


def reads_like_orders(text: str) -> bool:
    """Whether there is such a passage."""
    if not _has(_ANY_WORD_OR_ODD, text):
        return False
    if _has(_ODD, text):
        if _hides(text):
            return True
        text = _as_read(text)
    return _has(_ANY_WORD, text) and any(_has(pattern, text) for _sign, pattern in _SEARCHED)


def passages(text: str) -> list[Passage]:
    """The first passage of each sign, for people."""
    if not reads_like_orders(text):
        return []
    found = {Sign.HIDDEN: _hidden(text)} if _hides(text) else {}
    text = _as_read(text) if _has(_ODD, text) else text
    for sign, pattern in _SEARCHED:
        if sign not in found and _has(pattern, text):
            found[sign] = _first(sign, pattern, text)
    return list(found.values())


def _has(pattern: str, text: str) -> bool:
    return _found_by_rust(pattern)(text)


def _first(sign: Sign, pattern: str, text: str) -> Passage:
    """Where the text has the pattern; Python, which alone can tell, looks at the piece that has it.

    Of very few letters the two do not agree which are the same in small; then it is the piece.
    """
    pieces = (text[start : start + 2 * _PIECE] for start in range(0, len(text), _PIECE))
    piece = next((piece for piece in pieces if _has(pattern, piece)), text)
    match = re.search(pattern, piece)
    return Passage(sign, " ".join((match[0] if match else piece).split())[:_QUOTED])


def _as_read(text: str) -> str:
    """The text as a model reads it: nothing invisible, nothing escaped, each letter as the common one."""
    for escaped in (r"\n", r"\r", r"\t"):
        text = text.replace(escaped, "\n")
    text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    plain = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    return plain.translate(_READ) if _has(_ODD, plain) else plain


def _hides(text: str) -> bool:
    return _has(_HIDDEN, text) or (_has(_DIRECTION, text) and not _has(_RIGHT_TO_LEFT, text))


def _hidden(text: str) -> Passage:
    """What is there and not to be seen, by the names of its characters."""
    names = (f"U+{ord(each):04X}" for each in sorted(set(text)) if _UNSEEN.match(each))
    return Passage(Sign.HIDDEN, ", ".join(names)[:_QUOTED])
