"""Writes the SHA-256, type, shape and a few decoded values of chosen tensors, read without the product's code.

  checkpoint_digests.py OUT.json DIR...     each DIR relative to the repository root

Needs numpy.
"""
import hashlib, json, struct, sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CHOSEN = ["embed.weight", "head.weight", "norm.weight", "hc_head_scale", "layers.0.ffn.gate.tid2eid", "layers.0.attn.wq_a.weight",
          "layers.0.attn.wq_a.scale", "layers.2.attn.compressor.ape", "layers.2.attn.indexer.wq_b.weight",
          "layers.2.ffn.experts.3.w2.weight", "layers.2.ffn.experts.3.w2.scale", "layers.3.ffn.gate.bias", "layers.4.attn.wo_b.weight"]
NUMPY = {"F32": "<f4", "I64": "<i8", "I8": "i1", "F8_E8M0": "u1", "F8_E4M3": "u1", "BF16": "<u2"}


def tensors(directory):
    for path in sorted(directory.glob("model*.safetensors")):
        raw = path.read_bytes()
        n = struct.unpack("<Q", raw[:8])[0]
        for name, t in json.loads(raw[8:8 + n]).items():
            if name != "__metadata__":
                a, b = t["data_offsets"]
                yield name, t["dtype"], t["shape"], raw[8 + n + a:8 + n + b]


def describe(dtype, shape, raw):
    values = np.frombuffer(raw, NUMPY[dtype]).reshape(shape)
    # The byte-wise sum says at once whether a difference is in content or in order.
    return {"dtype": dtype, "shape": shape, "sha256": hashlib.sha256(raw).hexdigest(),
            "byte_sum": int(np.frombuffer(raw, "u1").astype(np.int64).sum()), "first": values.reshape(-1)[:4].tolist()}


def main():
    out = {}
    for name in sys.argv[2:]:
        found = list(tensors(ROOT / name))
        out[name] = {"tensors": len(found), "bytes": sum(len(r) for *_, r in found),
                     "chosen": {n: describe(d, s, r) for n, d, s, r in found if n in CHOSEN}}
        missing = set(CHOSEN) - set(out[name]["chosen"])
        assert not missing, missing
    Path(sys.argv[1]).write_text(json.dumps(out, indent=1) + "\n")


main()
