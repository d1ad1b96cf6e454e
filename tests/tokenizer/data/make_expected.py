#!/usr/bin/env python3
"""Writes the expected values of these tests: what the Hugging Face `tokenizers` library and Python compute.

    python3 -m venv V && V/bin/pip install tokenizers==0.23.3
    tools/fetch_v4_tokenizer.sh && V/bin/python tests/tokenizer/data/make_expected.py

tiny_expected.json, v4_expected.json: `ids` are plain text, encoded with the file's added tokens removed, so that none
  of them is matched; `control_ids` are encoded with the file as it is (raw prompts).
merge_expected.json: random merge tables over a small alphabet. The vocabulary is the 256 bytes, then each new result.
split_expected.json: split patterns and the pieces they give.
utf8_expected.json: bytes in hexadecimal and Python's decoding with errors="replace".
"""
import json
import pathlib
import random

import tokenizers

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent.parent

family = "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466"
texts = [
    "", " ", "a", "Hello, world!", "  leading and trailing  ", "The quick brown fox jumps over the lazy dog.",
    "I'm can't WON'T they'll it's we've I'd", "CamelCase snake_case kebab-case SCREAMING_CASE",
    "1", "12", "123", "1234", "12345678901234567890", "3.14159 1,000,000 0x1F 1e-5", "a1b22c333d4444",
    "½ ⅷ ① ٣٤٥ １２３４ ९८७", "tab\tseparated\tvalues", "one\ntwo\n\nthree\n\n\n", "dos\r\nlines\r\n\r\nend", "\r\r\n\n\r",
    " \n \n", "\n    indented\n        more\n", "trailing blanks   \n", "   1", "a   中", "x \u00a0\u3000\u2009\u200a y",
    "\u180e\u180ea \u180e b", "\u0085next\u2028line\u2029para", "\u001c\u001d\u001e\u001f separators", "\u0000", "a\u0000b\u0000\u0000c",
    "中文分词测试，标点。", "東京タワーは333メートルです", "ひらがなカタカナ漢字mixed混在", "㐀㐁 \u9fa5\u9fa6 𠀀𠀁", "안녕하세요 세계",
    "Привет, мир! Ёлка", "Γειά σου Κόσμε", "שלום עולם", "مرحبا بالعالم", "हिन्दी में लिखें", "ภาษาไทยไม่มีช่องว่าง", "Tiếng Việt có dấu",
    "e\u0301 a\u0308\u0323 n\u0303o", "\u0301\u0301alone", "naïve café Ångström ﬁ ß ẞ", "😀😃😄", "go 🚀🚀 now", family + " family",
    "👍🏽 ❤️ 🏳️‍🌈 🇩🇪🇯🇵", "new emoji \U0001FAE8 and script \U00010D4A\U00010D50", "\u200b\u200d\u2060\ufeff zero width",
    "$€£¥ ±×÷ ≤≥≠ → ⇒ ∑∏", "!@#$%^&*()_+-=[]{}|;':\",./<>?`~\\", "---- ==== **** ////", "http://example.org/a?b=c&d=e#f",
    "int main(void) { return 0; }  // done\n", "def f(x):\n    return x ** 2\n", '{"key": [1, 2.5, null], "s": "\\u00e9"}',
    "<b>bold</b><br/>", "<think>plan</think>", "<｜User｜>hi<｜Assistant｜>", "<｜DSML｜invoke name=\"f\">", "<dsml:x></dsml:x>",
    "\ue000\uf8ff private \U000F0000", "\ufffd\uffff\U0010FFFF", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "a" * 2000, " " * 777 + "x", "\n" * 300, "=" * 500, "ab" * 900, "字" * 400, "\u0301" * 200,
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore. " * 12,
]  # fmt: skip
generator = random.Random(20260731)
letters = "  \n\r\t.,'\"-_<>|｜▁/()0123456789abcdefghijklmnopqrstuvwxyzABCXYZéßñäΩжאع中文字かなカナ한😀🚀\u200d\u0301\ufe0f\u00a0\u3000"
texts += ["".join(generator.choices(letters, k=generator.randrange(5, 120))) for _ in range(20)]
raw_prompts = [
    "<think>", "a<think>b</think>c", "<<think>>", "<thin<think>k>", "</think></think>", "<｜User｜>Hi <｜Assistant｜></think>",
    "<｜begin▁of▁sentence｜>text<｜end▁of▁sentence｜>", "<｜DSML｜tool_calls>", "｜DSML｜｜DSML｜", "｜DSML", "<｜fim▁begin｜>a<｜fim▁hole｜>b<｜fim▁end｜>",
    "<｜place▁holder▁no▁0｜><｜place▁holder▁no▁00｜>", "no control at all", "",
]  # fmt: skip


def make(vocabulary, target):
    definition = json.loads(vocabulary.read_text(encoding="utf-8"))
    full = tokenizers.Tokenizer.from_str(json.dumps(definition))
    definition["added_tokens"] = []
    plain = tokenizers.Tokenizer.from_str(json.dumps(definition))

    def ids(tokenizer, text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    cases = [{"text": text, "ids": ids(plain, text)} for text in texts]
    cases += [{"text": text, "ids": ids(plain, text), "control_ids": ids(full, text)} for text in raw_prompts]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    header = f'"made_by": "make_expected.py with tokenizers {tokenizers.__version__}"'
    target.write_text("{" + header + ', "cases": [\n' + lines + "\n]}\n")
    print(f"{target.name}: {len(cases)} cases, {target.stat().st_size} bytes")


make(root / "models/dsv4-tiny/tokenizer.json", here / "tiny_expected.json")
make(root / "build/test-data/v4-tokenizer.json", here / "v4_expected.json")


def byte_level_alphabet():
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    spelling = {byte: chr(byte) for byte in plain}
    spelling.update({byte: chr(0x100 + i) for i, byte in enumerate(others)})
    return [spelling[byte] for byte in range(256)]


def write(name, cases):
    target = here / name
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    target.write_text("[\n" + lines + "\n]\n")
    print(f"{name}: {len(cases)} cases, {target.stat().st_size} bytes")


def merge_cases():
    cases = []
    for _ in range(40):
        vocabulary = {spelling: byte for byte, spelling in enumerate(byte_level_alphabet())}
        known, merges = list("abc"), []
        while len(merges) < generator.randrange(3, 25):
            pair = [generator.choice(known), generator.choice(known)]
            if pair in merges or len(pair[0] + pair[1]) > 12:
                continue
            merges.append(pair)
            if pair[0] + pair[1] not in vocabulary:
                vocabulary[pair[0] + pair[1]] = len(vocabulary)
                known.append(pair[0] + pair[1])
        generator.shuffle(merges)  # so that a product may have a lower rank than its parts
        model = tokenizers.models.BPE(vocab=vocabulary, merges=[tuple(pair) for pair in merges])
        tokenizer = tokenizers.Tokenizer(model)
        words = ["".join(generator.choices("abc", k=generator.randrange(1, 60))) for _ in range(6)] + ["a" * 50]
        added = list(vocabulary)[256:]
        cases.append({"added": added, "merges": merges, "texts": words, "ids": [ids_of(tokenizer, w) for w in words]})
    return cases


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def split_cases():
    text = "Don't  stop\u180e\u180e at 12345 AB\u00e9\u0301 \u6f22\u5b57\u3000x\r\n\r\n  'S \U0001FAE8\u0085end-1\u00bd  "
    lists = [
        [r"\p{N}{1,3}"], [r"[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"], [r"\s+"], [r"\S+"], [r"\s+(?!\S)|\s+"], [r"[^\s\p{L}]+"],
        [r"\P{L}+"], [r"\p{^L}+"], [r"x*"], [r"(?=\p{Lu})"], [r"(?i:'s|'t)"], [r"(?<=t)\s"], [r"(?<!p)\s"], [r"."], [r"[\r\n]+", r"\p{L}+", r"\p{Nd}"],
        [r"\p{So}|\p{Lu}\p{Ll}?"], [r"a?+b??|\p{M}"], [r"(?>ab|a)t?"], [r"[\p{N}\p{S}]{2,}"], [r"[!-/:-@]\s?"], [r"\p{Han}+"], [r"(?i)s|T\s"], [r"a{1,2}?|5{1}"],
        [r"[\s\-1]+"], [r"[-\s]+"], [r"[\s-]+"], [r"[\p{Nd}A-Z-]+"],
    ]  # fmt: skip
    cases = []
    for patterns in lists:
        for use_regex in (False, True):
            steps = [tokenizers.pre_tokenizers.Split(tokenizers.Regex(p), "isolated") for p in patterns]
            steps.append(tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex))
            pieces = tokenizers.pre_tokenizers.Sequence(steps).pre_tokenize_str(text)
            cases.append({"patterns": patterns, "use_regex": use_regex, "text": text,
                          "pieces": [text[begin:end] for _, (begin, end) in pieces]})  # fmt: skip
    return cases


def utf8_cases():
    samples = ["616263", "c3a9", "e282ac", "f09f9a80", "ff", "80", "c3", "e282", "f09f9a", "c3c3a9", "e28261", "f09f9a61", "c080", "e08080",
               "eda080", "f0808080", "f4908080", "f5808080", "efbfbd", "61ff62fe63", "e282e282ac", "f09f9af09f9a80", "efbbbf61", "00ff00"]  # fmt: skip
    for _ in range(200):
        data = bytearray("".join(generator.choices(letters, k=6)).encode())
        for _ in range(generator.randrange(4)):
            data[generator.randrange(len(data))] = generator.choice([0x80, 0xBF, 0xC3, 0xE2, 0xED, 0xF0, 0xF4, 0xFF, 0x41])
        samples.append(bytes(data).hex())
    return [{"hex": sample, "text": bytes.fromhex(sample).decode("utf-8", "replace")} for sample in samples]


write("merge_expected.json", merge_cases())
write("split_expected.json", split_cases())
write("utf8_expected.json", utf8_cases())
