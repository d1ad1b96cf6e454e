"""Makes tests/backend_cpu/data/odd: a random checkpoint whose widths fit no block size, and what the serving reference
computes from it. Groups, scale grids, streams, heads and windows are all of sizes that the released model never has.

  python3 make_odd_model.py        (needs numpy; run from anywhere)
"""
import json, os, sys
import numpy as np
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from reference import Checkpoint, E2M1, E4M3
from reference_serve import Serve, as_golden, bf16, write_safetensors

OUT = os.path.join(HERE, "data", "odd")
CONFIG = {
    "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "num_key_value_heads": 1, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
    "norm_topk_prob": True, "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "expert_dtype": "fp4", "max_position_embeddings": 1024,
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"},
    "swiglu_limit": 1.5, "hc_mult": 2, "hc_sinkhorn_iters": 3, "routed_scaling_factor": 2.5, "rope_theta": 10000.0, "compress_rope_theta": 160000.0,
    "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1},
    "vocab_size": 50, "hidden_size": 96, "moe_intermediate_size": 160, "num_hidden_layers": 3, "num_attention_heads": 3, "head_dim": 112, "qk_rope_head_dim": 16,
    "q_lora_rank": 136, "num_experts_per_tok": 2, "n_routed_experts": 4, "n_shared_experts": 1, "compress_ratios": [0, 4, 128], "num_hash_layers": 1,
    "o_groups": 3, "o_lora_rank": 20, "index_n_heads": 5, "index_head_dim": 32, "index_topk": 7, "sliding_window": 24, "rms_norm_eps": 1e-5, "hc_eps": 1e-4,
}
rng = np.random.default_rng(20)
tensors = {}                                                      # name -> (dtype, array as `reference.Checkpoint` holds it)

def nearest(x, table):
    order = np.argsort(np.where(np.isnan(table), np.inf, table), kind="stable")[:np.count_nonzero(~np.isnan(table))]; grid = table[order]
    i = np.clip(np.searchsorted(grid, x), 1, len(grid) - 1)
    return order[np.where(x - grid[i - 1] < grid[i] - x, i - 1, i)].astype(np.uint8)
def scales(blocks, top): return (np.ceil(np.log2(blocks / top)) + 127).astype(np.uint8)
def fp8(name, n, k, size=1.0):
    w = rng.normal(0, size / k ** .5, (n, k)); pad = np.pad(w, [(0, -n % 128), (0, -k % 128)]).reshape(-(-n // 128), 128, -(-k // 128), 128)
    s = scales(abs(pad).max((1, 3)), 448); full = (2.0 ** (s.astype(int) - 127)).repeat(128, 0)[:n].repeat(128, 1)[:, :k]
    tensors[name + ".weight"], tensors[name + ".scale"] = ("F8_E4M3", nearest(w / full, E4M3)), ("F8_E8M0", s)
def fp4(name, n, k, size=1.0):
    w = rng.normal(0, size / k ** .5, (n, k)); s = scales(abs(w.reshape(n, -1, 32)).max(2), 6)
    c = nearest(w / (2.0 ** (s.astype(int) - 127)).repeat(32, 1), E2M1); tensors[name + ".weight"], tensors[name + ".scale"] = ("I8", c[:, ::2] | c[:, 1::2] << 4), ("F8_E8M0", s)
def plain(name, dtype, shape, size=1.0, mean=0.0):
    a = rng.normal(mean, size, shape).astype(np.float32); tensors[name] = (dtype, bf16(a) if dtype == "BF16" else a)

def build():
    c = CONFIG; D, n, H, d, q, I, V = (c[k] for k in ("hidden_size", "hc_mult", "num_attention_heads", "head_dim", "q_lora_rank", "moe_intermediate_size", "vocab_size"))
    E, ih, hd = c["n_routed_experts"], c["index_n_heads"], c["index_head_dim"]
    def site(p, m): plain(p + "_fn", "F32", (m, n * D), (n * D) ** -.5); plain(p + "_base", "F32", (m,), .5)
    def compressor(p, ratio, width):
        w = width * (2 if ratio == 4 else 1)
        for x in ("wkv", "wgate"): plain(f"{p}.{x}.weight", "BF16", (w, D), D ** -.5)
        plain(p + ".ape", "F32", (ratio, w), .5); plain(p + ".norm.weight", "BF16", (width,), .1, 1)
    plain("embed.weight", "BF16", (V, D)); plain("head.weight", "BF16", (V, D), D ** -.5); plain("norm.weight", "BF16", (D,), .1, 1)
    site("hc_head", n); plain("hc_head_scale", "F32", (1,), .1, 1)
    for l, ratio in enumerate(c["compress_ratios"]):
        p = f"layers.{l}."; a = p + "attn."; f = p + "ffn."
        for s in ("attn", "ffn"): site(f"{p}hc_{s}", n * (n + 2)); plain(f"{p}hc_{s}_scale", "F32", (3,), .1, 1); plain(f"{p}{s}_norm.weight", "BF16", (D,), .1, 1)
        fp8(a + "wq_a", q, D); plain(a + "q_norm.weight", "BF16", (q,), .1, 1); fp8(a + "wq_b", H * d, q); fp8(a + "wkv", d, D); plain(a + "kv_norm.weight", "BF16", (d,), .1, 1)
        plain(a + "attn_sink", "F32", (H,)); g = c["o_groups"]; fp8(a + "wo_a", g * c["o_lora_rank"], H * d // g); fp8(a + "wo_b", D, g * c["o_lora_rank"])
        if ratio: compressor(a + "compressor", ratio, d)
        if ratio == 4: compressor(a + "indexer.compressor", ratio, hd); fp8(a + "indexer.wq_b", ih * hd, q); plain(a + "indexer.weights_proj.weight", "BF16", (ih, D), D ** -.5)
        plain(f + "gate.weight", "BF16", (E, D), D ** -.5)
        # The hash table names an expert twice in some rows: it is then added once.
        if l < c["num_hash_layers"]: tensors[f + "gate.tid2eid"] = ("I64", rng.integers(0, E, (V, c["num_experts_per_tok"])))
        else: plain(f + "gate.bias", "F32", (E,), .1)
        for e in range(E):
            for w, shape in (("w1", (I, D)), ("w2", (D, I)), ("w3", (I, D))): fp4(f"{f}experts.{e}.{w}", *shape, 2)
        for w, shape in (("w1", (I, D)), ("w2", (D, I)), ("w3", (I, D))): fp8(f"{f}shared_experts.{w}", *shape, 2)

def save(path):
    width = {"F32": "<f4", "I64": "<i8", "I8": "u1", "F8_E4M3": "u1", "F8_E8M0": "u1"}; head, blobs, at = {}, [], 0
    for k, (t, a) in tensors.items():
        raw = (a.view(np.uint32) >> 16).astype("<u2").tobytes() if t == "BF16" else np.ascontiguousarray(a, width[t]).tobytes()
        head[k] = {"dtype": t, "shape": list(a.shape), "data_offsets": [at, at + len(raw)]}; blobs.append(raw); at += len(raw)
    j = json.dumps(head).encode(); j += b" " * (-len(j) % 8)
    with open(path, "wb") as f: f.write(len(j).to_bytes(8, "little") + j + b"".join(blobs))

if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True); build(); json.dump(CONFIG, open(f"{OUT}/config.json", "w"), indent=1); save(f"{OUT}/model.safetensors")
    model = Serve(Checkpoint(OUT)); ids = rng.integers(0, CONFIG["vocab_size"], 140)
    g = as_golden(model.forward(ids), ids.astype(np.int32), np.arange(len(ids)), CONFIG["index_topk"]); g["positions"] = g["positions"].astype(np.int32)
    write_safetensors(f"{OUT}/golden_serve.safetensors", {k: (v.view(np.uint32) >> 16).astype(np.uint16) if k.startswith("streams") else v for k, v in g.items()})
