"""Holds the `dsv4` program to its command line contract: what each command prints, writes and returns.

usage: contract.py DSV4_PROGRAM SOURCE_DIR
"""
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(SOURCE / "tests/oracle"))
from reference import read_safetensors  # noqa: E402

TINY = str(SOURCE / "pipelines/cpu_tiny.toml")
NORWAY = "What is the capital of Norway?"
OSLO = "The capital of Norway is Oslo."


def dsv4(*arguments, code=0, stdin=None):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, input=stdin, timeout=120)
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-500:], done.stderr[-500:])
    if code:
        assert done.stderr.strip(), arguments
    return done.stdout


def run(folder):
    assert dsv4("run", TINY, "--prompt", NORWAY) == OSLO + "\n"
    answer = json.loads(dsv4("run", TINY, "--prompt", NORWAY, "--json"))
    assert answer["object"] == "chat.completion" and answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": OSLO}
    assert answer["usage"]["prompt_tokens"] == 11 and answer["usage"]["completion_tokens"] == 8
    messages = [{"role": "user", "content": NORWAY}]
    (folder / "array.json").write_text(json.dumps(messages))
    assert dsv4("run", TINY, "--messages", folder / "array.json") == OSLO + "\n"
    (folder / "body.json").write_text(json.dumps({"model": "m", "messages": messages, "max_tokens": 100}))
    assert dsv4("run", TINY, "--messages", folder / "body.json") == OSLO + "\n"
    # Flags win over the body.
    cut = json.loads(dsv4("run", TINY, "--messages", folder / "body.json", "--max-tokens", 3, "--json"))
    assert cut["usage"]["completion_tokens"] == 3 and cut["choices"][0]["finish_reason"] == "length"
    assert dsv4("run", TINY, "--prompt", NORWAY, "--precision", "score") == OSLO + "\n"
    dsv4("run", TINY, code=2)
    dsv4("run", TINY, "--messages", folder / "none.json", code=3)
    dsv4("run", folder / "none.toml", "--prompt", "x", code=3)
    dsv4("run", TINY, "--prompt", "x", "--set", "kv.blok_size=1", code=1)


def score(folder):
    golden = SOURCE / "tests/vectors/model/golden-a"
    tokens = [int(t) for t in read_safetensors(golden / "golden.safetensors")["tokens"][1]]
    (folder / "ids.json").write_text(json.dumps(tokens))
    common = ("--checkpoint", golden, "--tokens", folder / "ids.json", "--out", folder / "out.safetensors")
    dsv4("score", *common, "--streams")
    out, want = read_safetensors(folder / "out.safetensors"), read_safetensors(golden / "golden.safetensors")
    at = want["positions"][1]
    assert out["logits"][0] == "F32" and out["logits"][1].shape == (400, 1024)
    assert out["argmax"][0] == "I32" and (out["argmax"][1] == want["argmax"][1]).all()
    error = abs(out["logits"][1][at] - want["logits"][1]).max()
    assert error <= 1e-3, error
    for layer in range(5):
        assert out[f"streams.{layer}"][0] == "F32" and out[f"streams.{layer}"][1].shape == (400, 4, 256)
    for layer in (2, 4):
        assert out[f"picks.{layer}"][0] == "I32" and (out[f"picks.{layer}"][1][at] == want[f"picks.{layer}"][1]).all()
    dsv4("score", *common, "--precision", "serve", "--chunk", 7)
    (folder / "ids.json").write_text("[1, 99999]")
    dsv4("score", *common, code=2)


def codec():
    vectors = SOURCE / "tests/vectors"
    for vector in ("encoding/enc-020-two-calls-sorted.json", "encoding/req-008-tools-attach.json"):
        got, want = json.loads(dsv4("codec", vectors / vector)), json.loads((vectors / vector).read_text())["expected"]
        assert got["prompt"] == want["prompt"] and got["segments"] == want["segments"], vector
    for split in ((), ("--split", "every"), ("--split", "codepoint")):
        vector = vectors / "parsing/par-010-all-types.json"
        assert json.loads(dsv4("codec", vector, *split)) == json.loads(vector.read_text())["expected"]
    dsv4("codec", SOURCE / "README.md", code=2)


def others(folder):
    assert json.loads(dsv4("plan", TINY, "--json"))["engine"]["backend"] == "backend-cpu"
    assert "= head_norm_rope/1(" in dsv4("plan", TINY, "--program")
    (folder / "bad.toml").write_text("schema = 1\n[checkpont]\n")
    dsv4("plan", folder / "bad.toml", code=1)
    assert json.loads(dsv4("checkpoint", "inspect", SOURCE / "models/dsv4-tiny", "--json"))["loadable"] is True
    dsv4("checkpoint", "inspect", folder, code=3)
    assert "backend-cpu" in dsv4("plugins", "list") and "accumulate" in dsv4("plugins", "inspect", "backend-cpu")
    dsv4("plugins", "inspect", "backend-none", code=3)
    dsv4("nonsense", code=2)


with tempfile.TemporaryDirectory() as name:
    run(pathlib.Path(name))
    score(pathlib.Path(name))
    codec()
    others(pathlib.Path(name))
print("the command line contract holds")
