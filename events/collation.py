# ruff: noqa: RUF001
"""Texts in a form that Python compares as a collation of MySQL and MariaDB compares the texts.

The collations are those that weigh each character by itself, not those of the Unicode Collation Algorithm,
such as utf8mb4_0900_ai_ci.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

Form: TypeAlias = Callable[[str], str]

_GENERAL: Final = """
AaÀÁÂÃÄÅàáâãäåĀāĂăĄąǍǎǞǟǠǡǺǻȀȁȂȃȦȧḀḁẠạẢảẤấẦầẨẩẪẫẬậẮắẰằẲẳẴẵẶặ BbḂḃḄḅḆḇ CcÇçĆćĈĉĊċČčḈḉ DdĎďḊḋḌḍḎḏḐḑḒḓ
EeÈÉÊËèéêëĒēĔĕĖėĘęĚěȄȅȆȇȨȩḔḕḖḗḘḙḚḛḜḝẸẹẺẻẼẽẾếỀềỂểỄễỆệ FfḞḟ GgĜĝĞğĠġĢģǦǧǴǵḠḡ HhĤĥȞȟḢḣḤḥḦḧḨḩḪḫẖ
IiÌÍÎÏìíîïĨĩĪīĬĭĮįİıǏǐȈȉȊȋḬḭḮḯỈỉỊị JjĴĵǰ KkĶķǨǩḰḱḲḳḴḵ LlĹĺĻļĽľḶḷḸḹḺḻḼḽ MmḾḿṀṁṂṃ NnÑñŃńŅņŇňǸǹṄṅṆṇṈṉṊṋ
OoÒÓÔÕÖòóôõöŌōŎŏŐőƠơǑǒǪǫǬǭȌȍȎȏȪȫȬȭȮȯȰȱṌṍṎṏṐṑṒṓỌọỎỏỐốỒồỔổỖỗỘộỚớỜờỞởỠỡỢợ PpṔṕṖṗ Qq
RrŔŕŖŗŘřȐȑȒȓṘṙṚṛṜṝṞṟ SsßŚśŜŝŞşŠšſȘșṠṡṢṣṤṥṦṧṨṩẛ TtŢţŤťȚțṪṫṬṭṮṯṰṱẗ
UuÙÚÛÜùúûüŨũŪūŬŭŮůŰűŲųƯưǓǔǕǖǗǘǙǚǛǜȔȕȖȗṲṳṴṵṶṷṸṹṺṻỤụỦủỨứỪừỬửỮữỰự VvṼṽṾṿ WwŴŵẀẁẂẃẄẅẆẇẈẉẘ XxẊẋẌẍ
YyÝýÿŶŷŸȲȳẎẏẙỲỳỴỵỶỷỸỹ ZzŹźŻżŽžẐẑẒẓẔẕ ÆæǢǣǼǽ Ðð ØøǾǿ Þþ Đđ Ħħ Ĳĳ Ŀŀ Łł Ŋŋ Œœ Ŧŧ Ɓɓ Ƃƃ Ƅƅ Ɔɔ Ƈƈ Ɖɖ Ɗɗ
Ƌƌ Ǝǝ Əə Ɛɛ Ƒƒ Ɠɠ Ɣɣ Ɩɩ Ɨɨ Ƙƙ Ɯɯ Ɲɲ Ɵɵ Ƣƣ Ƥƥ Ʀʀ Ƨƨ Ʃʃ Ƭƭ Ʈʈ Ʊʊ Ʋʋ Ƴƴ Ƶƶ ƷǮǯʒ Ƹƹ Ƽƽ Ǆǅǆ Ǉǈǉ Ǌǋǌ Ǥǥ
Ǳǲǳ Ƕƕ Ƿƿ Ȝȝ Ȣȣ Ȥȥ ΑΆάαἀἁἂἃἄἅἆἇἈἉἊἋἌἍἎἏὰᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾰᾱᾲᾳᾴᾶᾷᾸᾹᾺᾼ Ββϐ Γγ Δδ ΕΈέεἐἑἒἓἔἕἘἙἚἛἜἝὲῈ Ζζ
ΗΉήηἠἡἢἣἤἥἦἧἨἩἪἫἬἭἮἯὴᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟῂῃῄῆῇῊῌ Θθϑ ΙͅΊΐΪίιϊἰἱἲἳἴἵἶἷἸἹἺἻἼἽἾἿὶιῐῑῒῖῗῘῙῚ Κκϰ Λλ Μµμ Νν Ξξ
ΟΌοόὀὁὂὃὄὅὈὉὊὋὌὍὸῸ Ππϖ ΡρϱῤῥῬ Σςσϲ Ττ ΥΎΫΰυϋύὐὑὒὓὔὕὖὗὙὛὝὟὺῠῡῢῦῧῨῩῪ Φφϕ Χχ Ψψ
ΩΏωώὠὡὢὣὤὥὦὧὨὩὪὫὬὭὮὯὼᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯῲῳῴῶῷῺῼ ϒϓϔ Ϛϛ Ϝϝ Ϟϟ Ϡϡ Ϣϣ Ϥϥ Ϧϧ Ϩϩ Ϫϫ Ϭϭ Ϯϯ Ђђ Єє Ѕѕ ІЇії Јј
Љљ Њњ Ћћ Џџ АаӐӑӒӓ Бб Вв ГЃгѓ Дд ЕЀЁеѐёӖӗ ЖжӁӂӜӝ ЗзӞӟ ИЍиѝӢӣӤӥ Йй КЌкќ Лл Мм Нн ОоӦӧ Пп Рр Сс Тт
УЎуўӮӯӰӱӲӳ Фф Хх Цц ЧчӴӵ Шш Щщ Ъъ ЫыӸӹ Ьь ЭэӬӭ Юю Яя Ѡѡ Ѣѣ Ѥѥ Ѧѧ Ѩѩ Ѫѫ Ѭѭ Ѯѯ Ѱѱ Ѳѳ ѴѵѶѷ Ѹѹ Ѻѻ Ѽѽ Ѿѿ
Ҁҁ Ҍҍ Ҏҏ Ґґ Ғғ Ҕҕ Җҗ Ҙҙ Ққ Ҝҝ Ҟҟ Ҡҡ Ңң Ҥҥ Ҧҧ Ҩҩ Ҫҫ Ҭҭ Үү Ұұ Ҳҳ Ҵҵ Ҷҷ Ҹҹ Һһ Ҽҽ Ҿҿ Ӄӄ Ӈӈ Ӌӌ Ӕӕ ӘәӚӛ Ӡӡ
ӨөӪӫ Աա Բբ Գգ Դդ Եե Զզ Էէ Ըը Թթ Ժժ Իի Լլ Խխ Ծծ Կկ Հհ Ձձ Ղղ Ճճ Մմ Յյ Նն Շշ Ոո Չչ Պպ Ջջ Ռռ Սս Վվ Տտ Րր
Ցց Ււ Փփ Քք Օօ Ֆֆ Άά Έέ Ήή Ίί Ύύ Όό Ώώ Ⅰⅰ Ⅱⅱ Ⅲⅲ Ⅳⅳ Ⅴⅴ Ⅵⅵ Ⅶⅶ Ⅷⅷ Ⅸⅸ Ⅹⅹ Ⅺⅺ Ⅻⅻ Ⅼⅼ Ⅽⅽ Ⅾⅾ Ⅿⅿ Ⓐⓐ Ⓑⓑ Ⓒⓒ Ⓓⓓ
Ⓔⓔ Ⓕⓕ Ⓖⓖ Ⓗⓗ Ⓘⓘ Ⓙⓙ Ⓚⓚ Ⓛⓛ Ⓜⓜ Ⓝⓝ Ⓞⓞ Ⓟⓟ Ⓠⓠ Ⓡⓡ Ⓢⓢ Ⓣⓣ Ⓤⓤ Ⓥⓥ Ⓦⓦ Ⓧⓧ Ⓨⓨ Ⓩⓩ Ａａ Ｂｂ Ｃｃ Ｄｄ Ｅｅ Ｆｆ Ｇｇ
Ｈｈ Ｉｉ Ｊｊ Ｋｋ Ｌｌ Ｍｍ Ｎｎ Ｏｏ Ｐｐ Ｑｑ Ｒｒ Ｓｓ Ｔｔ Ｕｕ Ｖｖ Ｗｗ Ｘｘ Ｙｙ Ｚｚ
"""
"""The characters that general_ci holds for equal, a word for each; the first one has their weight."""
_SWEDISH: Final = """
AaÀÁÂÃàáâã Bb CcÇç DdÐð EeÈÉÊËèéêë Ff Gg Hh IiÌÍÎÏìíîï Jj Kk Ll Mm NnÑñ OoÒÓÔÕòóôõ
Pp Qq Rr Ss Tt UuÙÚÛùúû Vv Ww Xx YyÜÝüý Zz [Åå \\ÄÆäæ ]Öö Øø Þþ
"""
"""Equal characters of latin1_swedish_ci; the letters after Z weigh as the characters after Z of ASCII."""
_LAST: Final = 0xFFFF
_BELOW, _END, _ABOVE = "-", "0", ">"


def form_of(collation: str) -> Form | None:
    """Return the function from a text to its form; None for a collation that isn't known here."""
    form = letters_of(collation)
    if form is None or "_nopad_" in collation or collation.endswith("_0900_bin"):
        return form
    return lambda text: space_padded(form(text))


def letters_of(collation: str) -> Form | None:
    """Return the function from a text to its characters' weights, a character each, by which LIKE compares;
    None for a collation that isn't known here."""
    return _FORMS.get(collation.replace("_nopad_", "_").replace("_0900_bin", "_bin"))


def text_of(collation: str, form: str) -> bytes:
    """Return a text that is equal to those of this form, in the collation's character set."""
    text = form if "_nopad_" in collation or collation.endswith("_0900_bin") else unpadded(form)
    return text.encode("latin-1" if collation.startswith("latin1_") else "utf-8")


def _weights(words: str) -> dict[int, str]:
    return {ord(character): word[0] for word in words.split() for character in word}


class _General(dict[int, str]):
    """Weights of general_ci by code point; of the most frequent ones also if they are their own."""

    def __init__(self) -> None:
        super().__init__({point: chr(point) for point in range(0x250)} | _weights(_GENERAL))

    def __missing__(self, point: int) -> str:
        if point > _LAST:
            return "\ufffd"
        raise LookupError


def _latin1(words: str = "") -> Mapping[int, str]:
    """Return the weights of characters of latin1, by the words of equal bytes."""
    weights = _weights(words)
    characters = (
        bytes([byte]).decode("cp1252", "replace").replace("\ufffd", chr(byte)) for byte in range(256)
    )
    return {ord(character): weights.get(byte, chr(byte)) for byte, character in enumerate(characters)}


def _by(weights: Mapping[int, str]) -> Form:
    return lambda text: text.translate(weights)


_GENERAL_CI: Final = _by(_General())

_FORMS: Final[dict[str, Form]] = {
    "ascii_bin": str,
    "ascii_general_ci": str.upper,
    "utf8mb3_bin": str,
    "utf8mb4_bin": str,
    "utf8mb3_general_ci": _GENERAL_CI,
    "utf8mb4_general_ci": _GENERAL_CI,
    "latin1_bin": _by(_latin1()),
    "latin1_swedish_ci": _by(_latin1(_SWEDISH)),
}


def space_padded(text: str) -> str:
    """Return a form that compares as if spaces without end followed.

    After each space comes whether the next other character is below or above it, or the text ends.
    """
    text = text.rstrip(" ")
    if " " not in text:
        return f"{text} {_END}"
    letters = [_END, " "]
    following = _END
    for character in reversed(text):
        if character == " ":
            letters.append(following)
        else:
            following = _BELOW if character < " " else _ABOVE
        letters.append(character)
    return "".join(reversed(letters))


def unpadded(form: str) -> str:
    """Return the text of a space_padded form, without spaces at its end."""
    letters, position = [], 0
    while position < len(form):
        letters.append(form[position])
        position += 2 if form[position] == " " else 1
    return "".join(letters).rstrip(" ")
