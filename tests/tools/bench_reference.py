"""Writes percentiles by NumPy and Poisson arrivals by an independent generator, for the tests of the load generator.

  bench_reference.py OUT.json

Needs numpy.
"""
import json, math, sys

import numpy as np

MASK = (1 << 64) - 1


def mt19937_64(seed):
    """Nishimura and Matsumoto's 64-bit Mersenne Twister."""
    n, m = 312, 156
    state = [seed & MASK]
    for i in range(1, n):
        state.append((6364136223846793005 * (state[-1] ^ (state[-1] >> 62)) + i) & MASK)
    while True:
        for i in range(n):
            x = (state[i] & 0xFFFFFFFF80000000) | (state[(i + 1) % n] & 0x7FFFFFFF)
            state[i] = state[(i + m) % n] ^ (x >> 1) ^ (0xB5026F5AA96619E9 if x & 1 else 0)
        for x in state:
            x ^= (x >> 29) & 0x5555555555555555
            x ^= (x << 17) & 0x71D67FFFEDA60000
            x ^= (x << 37) & 0xFFF7EEE000000000
            yield x ^ (x >> 43)


def arrivals(rate, seed, count):
    random, at, out = mt19937_64(seed), 0.0, []
    for _ in range(count):
        at -= math.log1p(-(next(random) >> 11) / 2.0**53) / rate
        out.append(int(at * 1e6))
    return out


def percentiles():
    rng = np.random.default_rng(20)
    for n in (1, 2, 3, 19, 20, 21, 99, 100, 101, 200, 777):
        values = np.round(rng.lognormal(3, 1, n), 3)
        nearest = [float(np.percentile(values, p, method="inverted_cdf")) for p in (50, 95, 99)]
        yield {"values": values.tolist(), "p50": nearest[0], "p95": nearest[1], "p99": nearest[2],
               "mean": float(values.mean()), "min": float(values.min()), "max": float(values.max())}


random = mt19937_64(5489)
for _ in range(10000):
    ten_thousandth = next(random)
assert ten_thousandth == 9981545732273789042  # the check value of the C++ standard
json.dump({"percentiles": list(percentiles()),
           "arrivals": [{"rate_per_s": r, "seed": s, "us": arrivals(r, s, 400)} for r, s in ((10.0, 7), (2500.0, 0), (0.01, 2**63 + 5))]},
          open(sys.argv[1], "w"), separators=(",", ":"))
