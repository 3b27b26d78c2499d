"""Errors of Google's library (python-dp) and of OpenDP: peer_utility.py mean|variance|median EPSILON ROWS

Prints two numbers. Mean and variance: root mean square error. Median: mean rank error as a share of the rows. All get the same
rows, the bounds 0 and 100, and the same epsilon under add/remove.
"""

import math
import sys

import opendp.prelude as dp
import pydp.algorithms.laplacian as google

dp.enable_features("contrib")
statistic, epsilon = sys.argv[1], float(sys.argv[2])
rows = [float(x) for x in sys.argv[3].split(",")]
n = len(rows)
low, high = 0.0, 100.0
mean = sum(rows) / n
variance = sum((x - mean) ** 2 for x in rows) / n
runs = 2000


def rms(truth, answer):
    return math.sqrt(sum((answer() - truth) ** 2 for _ in range(runs)) / runs)


def rank_error(value):
    below = sum(1 for x in rows if x < value)
    upto = sum(1 for x in rows if x <= value)
    return max(below - n / 2, n / 2 - upto, 0) / n


def opendp_parts(parts):
    """A sum for each part and a count, each at its share of epsilon."""
    share = epsilon / (len(parts) + 1)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    mechanisms = []
    for ends in parts:
        total = space >> dp.t.then_clamp(ends) >> dp.t.then_sum()
        scale = dp.binary_search_param(lambda s: total >> dp.m.then_laplace(s), 1, share, bounds=(1e-3, 1e9))
        mechanisms.append(total >> dp.m.then_laplace(scale))
    count = space >> dp.t.then_count()
    scale = dp.binary_search_param(lambda s: count >> dp.m.then_laplace(s), 1, share, bounds=(1e-3, 1e9))
    return mechanisms, count >> dp.m.then_laplace(scale)


if statistic == "mean":
    by_google = rms(mean, lambda: google.BoundedMean(epsilon=epsilon, lower_bound=low, upper_bound=high, dtype="float").quick_result(rows))
    # OpenDP's mean needs a public size; under add/remove it is a noisy sum over a noisy count, centred as its guide advises.
    (total,), count = opendp_parts([(low - 50.0, high - 50.0)])
    centred = [x - 50.0 for x in rows]
    by_opendp = rms(mean, lambda: min(max(50.0 + total(centred) / max(count(rows), 1), low), high))
elif statistic == "variance":
    by_google = rms(variance, lambda: google.BoundedVariance(epsilon=epsilon, lower_bound=low, upper_bound=high, dtype="float").quick_result(rows))
    (total, squares), count = opendp_parts([(-50.0, 50.0), (0.0, 2500.0)])
    centred = [x - 50.0 for x in rows]
    squared = [x * x for x in centred]

    def answer():
        k = max(count(rows), 1)
        return min(max(squares(squared) / k - (total(centred) / k) ** 2, 0.0), 2500.0)

    by_opendp = rms(variance, answer)
else:
    def google_median():
        return google.Median(epsilon=epsilon, lower_bound=low, upper_bound=high, dtype="float").quick_result(rows)

    few = 60
    by_google = sum(rank_error(google_median()) for _ in range(few)) / few
    candidates = [float(c) for c in range(0, 101)]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    scores = space >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)
    scale = dp.binary_search_param(lambda s: scores >> dp.m.then_noisy_max(dp.max_divergence(), s, negate=True), 1, epsilon, bounds=(1e-3, 1e9))
    choose = scores >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)
    by_opendp = sum(rank_error(candidates[choose(rows)]) for _ in range(runs)) / runs
print(by_google, by_opendp)
