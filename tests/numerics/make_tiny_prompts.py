"""Makes data/tiny_prompts.json: prompts for models/dsv4-tiny and what the references make of them.

  make_tiny_prompts.py            needs numpy and Hugging Face `tokenizers`

Each entry holds the prompt (text and ids), the greedy continuation by tests/oracle/reference.py (float64; LENGTH tokens or
up to the end of text), and, at every generated position of that continuation, the choice of
tests/oracle/reference_serve.py and its lead over the second best.
"""
import json, pathlib, sys
import numpy as np
from tokenizers import Tokenizer

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "tests/oracle"))
import reference, reference_serve

LENGTH = 40
EOS = 1
TOOLS = {
    "get_weather": {"name": "get_weather", "description": "Get the weather for a city.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}},
    "add": {"name": "add", "description": "Add two numbers.", "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}},
    "find_file": {"name": "find_file", "description": "Find a file by name.", "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
}
TOOL_TEXT = """

## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜tool_calls>" block like the following:

<｜DSML｜tool_calls>
<｜DSML｜invoke name="$TOOL_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$TOOL_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜tool_calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

{schemas}

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
"""


def encode(user, system="", tools=(), thinking=False, turns=()):
    """The publisher's prompt text. `turns`: finished (user, assistant) pairs of a chat before the question."""
    text = "<｜begin▁of▁sentence｜>" + system
    if tools:
        text += TOOL_TEXT.replace("{schemas}", "\n".join(json.dumps(t, ensure_ascii=False) for t in tools))
    for question, answer in turns:
        text += f"<｜User｜>{question}<｜Assistant｜></think>{answer}<｜end▁of▁sentence｜>"
    return text + f"<｜User｜>{user}<｜Assistant｜>" + ("<think>" if thinking else "</think>")


def check_encoder():
    """encode() against the vectors that the C++ encoder is held to."""
    for name in ("enc-001-chat-single", "enc-002-think-single-low", "enc-012-multi-turn-chat", "enc-017-tools-system"):
        vector = json.loads((root / f"tests/vectors/encoding/{name}.json").read_text())
        messages = vector["input"]["messages"]
        system = messages.pop(0) if messages[0]["role"] == "system" else {"content": ""}
        pairs = [(messages[i]["content"], messages[i + 1]["content"]) for i in range(0, len(messages) - 1, 2)]
        text = encode(messages[-1]["content"], system["content"], [t["function"] for t in system.get("tools", [])],
                      vector["input"]["thinking_mode"] == "thinking", pairs)
        assert text == vector["expected"]["prompt"], name


WORDS = ("amber anchor apple arrow aspen atlas basil beacon birch bison bramble breeze bronze cactus candle canyon cedar cherry "
         "cinder clover cobalt copper coral cotton crane cricket crystal daisy delta dune eagle ember falcon fern flint forest "
         "fossil garnet ginger glacier granite harbor hazel heron indigo island ivory jasmine").split()
FILLER = ["The fox sat near the quiet lake and looked at the sky.", "Nobody had seen a silver key for many days.",
          "In the morning Nora walked to the stone bridge.", "It rained a little, and then the sun came out."]


def code(i): return 10007 + i * 7919 % 89993


def codes(count, question):
    lines = []
    for i in range(count):
        lines.append(f"The code for {WORDS[i * 5 % len(WORDS)]} is {code(i)}.")
        if i % 3 == 1: lines.append(FILLER[i // 3 % len(FILLER)])
    return "\n".join(lines) + f"\n\nWhat is the code for {WORDS[question * 5 % len(WORDS)]}?"


def call(tool, **arguments):
    body = "".join(f'<｜DSML｜parameter name="{k}" string="{"true" if isinstance(v, str) else "false"}">{v}</｜DSML｜parameter>\n' for k, v in arguments.items())
    return f'\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="{tool}">\n{body}</｜DSML｜invoke>\n</｜DSML｜tool_calls>'


helpful = "You are a helpful assistant."
weather, add, find = TOOLS.values()
row = "copper lantern willow fox amber stone river"
long_row = " ".join(WORDS[i * 11 % len(WORDS)] for i in range(20))
# (kind, prompt, the right answer). The answer is only a guess of what the model says: it saves forward passes.
PROMPTS = [
    ("capital", encode("What is the capital of France?"), "The capital of France is Paris."),
    ("capital", encode("Name the capital of Peru."), "The capital of Peru is Lima."),
    ("capital", encode("Tell me the capital city of Iceland."), "The capital of Iceland is Reykjavik."),
    ("capital, second turn", encode("Name the capital of Kenya.", turns=[("What is the capital of Japan?", "The capital of Japan is Tokyo.")]), "The capital of Kenya is Nairobi."),
    ("capital, fourth turn", encode("What is the capital of Norway?", turns=[(f"Name the capital of {c}.", f"The capital of {c} is {v}.") for c, v in (("Italy", "Rome"), ("Cuba", "Havana"), ("Egypt", "Cairo"))]), "The capital of Norway is Oslo."),
    ("tool call", encode("What is the weather in Oslo?", helpful, [weather]), call("get_weather", city="Oslo")),
    ("tool call", encode("What is the weather in Boston for 3 days?", helpful, [weather, add]), call("get_weather", city="Boston", days=3)),
    ("tool call", encode("Use the tool to add 417 and 85.", helpful, [find, add, weather]), call("add", a=417, b=85)),
    ("tool call after thinking", encode("Where is the file maple.csv?", helpful, [find], thinking=True), "I need the tool find_file.</think>" + call("find_file", name="maple.csv")),
    ("json", encode("Extract name, age and city as JSON: Nora is 34 years old and lives in Osaka."), '{"name": "Nora", "age": 34, "city": "Osaka"}'),
    ("json", encode("Extract name, age and city as JSON: In Geneva lives Ben, who is 71."), '{"name": "Ben", "age": 71, "city": "Geneva"}'),
    ("addition", encode("What is 27 + 58?"), "85"),
    ("addition", encode("Compute 9 + 84."), "93"),
    ("addition, thinking", encode("Add 356 and 478.", thinking=True), "6+8=14, 5+7+1=13, 3+4+1=8. So 356+478=834.</think>834"),
    ("addition, thinking", encode("What is 905 + 96?", thinking=True), "5+6=11, 0+9+1=10, 9+0+1=10, 0+0+1=1. So 905+96=1001.</think>1001"),
    ("retrieval, 3 lines", encode(codes(3, 1)), f"The code for {WORDS[5]} is {code(1)}."),
    ("retrieval, 12 lines", encode(codes(12, 4)), f"The code for {WORDS[20]} is {code(4)}."),
    ("retrieval, 40 lines", encode(codes(40, 7)), f"The code for {WORDS[35]} is {code(7)}."),
    ("repetition", encode("Repeat exactly: " + row), row),
    ("repetition", encode("Repeat exactly: " + long_row), long_row),
]


class Remembering:
    """A checkpoint that dequantises each tensor once."""
    def __init__(self, checkpoint): self.checkpoint, self.config, self.t, self.known = checkpoint, checkpoint.config, checkpoint.t, {}
    def __call__(self, name):
        if name not in self.known: self.known[name] = self.checkpoint(name)
        return self.known[name]


def lead(row):
    second, best = np.sort(row)[-2:]
    return round(float(best) - float(second), 4)


def main():
    check_encoder()
    directory = root / "models/dsv4-tiny"
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    checkpoint = Remembering(reference.Checkpoint(str(directory)))
    score, serve = reference.Model(checkpoint), reference_serve.Serve(checkpoint)
    entries = []
    for kind, text, answer in PROMPTS:
        prompt = tokenizer.encode(text, add_special_tokens=False).ids
        guess = tokenizer.encode(answer, add_special_tokens=False).ids + [EOS]
        made, leads = [], []
        # Each pass settles every token up to the first that the guess gets wrong: a row sees only what stands before it.
        while len(made) < LENGTH and made[-1:] != [EOS]:
            ahead = guess[len(made):LENGTH - 1] if guess[:len(made)] == made else []
            rows = score.forward(np.array(prompt + made + ahead))[0][len(prompt) + len(made) - 1:]
            for logits, expected in zip(rows, ahead + [None]):
                made.append(int(logits.argmax()))
                leads.append(lead(logits))
                if made[-1] != expected or made[-1] == EOS: break
        ids = prompt + made
        logits = serve.forward(np.array(ids[:-1]))[0][len(prompt) - 1:]
        entries.append({"kind": kind, "text": text, "prompt": prompt, "greedy": made, "greedy_lead": leads,
                        "serve_argmax": logits.argmax(1).tolist(), "serve_lead": [lead(row) for row in logits]})
        print(f"{kind}: {len(prompt)} tokens, least lead {min(leads)}:", tokenizer.decode(made, skip_special_tokens=False), flush=True)
    lines = ",\n".join(json.dumps(e, ensure_ascii=False) for e in entries)
    (pathlib.Path(__file__).parent / "data/tiny_prompts.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
