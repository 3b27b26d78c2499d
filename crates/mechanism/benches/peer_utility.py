"""Errors of Google's library (python-dp) and of OpenDP: peer_utility.py mean|variance|median EPSILON RUNS < ROWS

One data set on each line of the input. Prints two numbers: the error of each library over all data sets, with so many runs on each.
Mean and variance: root mean square error. Median: mean rank error as a share of the rows. All get the same rows, the bounds 0 and 100,
and the same epsilon under add/remove.
"""

import bisect
import math
import sys

import opendp.prelude as dp
import pydp.algorithms.laplacian as google

dp.enable_features("contrib")
statistic, epsilon, runs = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
data_sets = [[float(x) for x in line.split(",")] for line in sys.stdin]
low, high = 0.0, 100.0
middle, half = 50, 50
# Google's median is slow; its error is far from the others'.
GOOGLE_MEDIANS = 60


def noisy(transformation, share):
    """Laplace noise of the least scale for this share of epsilon."""
    scale = dp.binary_search_param(lambda s: transformation >> dp.m.then_laplace(s), 1, share, bounds=(1e-3, 1e9))
    return transformation >> dp.m.then_laplace(scale)


def opendp_parts(parts):
    """A sum for each part and a count, each at its share of epsilon. Rows are whole numbers: OpenDP's float sums need twice the noise."""
    share = epsilon / (len(parts) + 1)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    sums = [noisy(space >> dp.t.then_clamp(ends) >> dp.t.then_sum(), share) for ends in parts]
    return sums, noisy(space >> dp.t.then_count(), share)


def clamped(value, ends):
    return min(max(value, ends[0]), ends[1])


def mean(rows):
    """The truth, and one answer of each library."""
    truth = sum(rows) / len(rows)
    by_google = lambda: google.BoundedMean(epsilon=epsilon, lower_bound=low, upper_bound=high, dtype="float")
    # OpenDP's mean needs a public size; under add/remove it is a noisy sum over a noisy count, centred as its guide advises.
    (total,), count = opendp_parts([(-half, half)])
    centred = [int(x) - middle for x in rows]
    return truth, lambda: by_google().quick_result(rows), lambda: clamped(middle + total(centred) / max(count(centred), 1), (low, high))


def variance(rows):
    average = sum(rows) / len(rows)
    truth = sum((x - average) ** 2 for x in rows) / len(rows)
    by_google = lambda: google.BoundedVariance(epsilon=epsilon, lower_bound=low, upper_bound=high, dtype="float")
    (total, squares), count = opendp_parts([(-half, half), (0, half * half)])
    centred = [int(x) - middle for x in rows]
    squared = [x * x for x in centred]

    def by_opendp():
        k = max(count(centred), 1)
        return clamped(squares(squared) / k - (total(centred) / k) ** 2, (0, half * half))

    return truth, lambda: by_google().quick_result(rows), by_opendp


def median_chooser():
    """OpenDP's choice among whole numbers: permute-and-flip by the distance from the middle rank."""
    candidates = [float(c) for c in range(int(low), int(high) + 1)]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    scores = space >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)

    def choice(scale):
        return scores >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)

    scale = dp.binary_search_param(choice, 1, epsilon, bounds=(1e-3, 1e9))
    choose = choice(scale)
    return lambda rows: candidates[choose(rows)]


def rank_error(ordered, value):
    n = len(ordered)
    below, upto = bisect.bisect_left(ordered, value), bisect.bisect_right(ordered, value)
    return max(below - n / 2, n / 2 - upto, 0) / n


if statistic == "median":
    by_google, by_opendp = [], []
    choose = median_chooser()
    for rows in data_sets:
        ordered = sorted(rows)
        by_opendp += [rank_error(ordered, choose(rows)) for _ in range(runs)]
        for _ in range(max(1, GOOGLE_MEDIANS // len(data_sets))):
            median = google.Median(epsilon=epsilon, lower_bound=low, upper_bound=high, dtype="float")
            by_google.append(rank_error(ordered, median.quick_result(rows)))
    print(sum(by_google) / len(by_google), sum(by_opendp) / len(by_opendp))
else:
    squares = [0.0, 0.0]
    for rows in data_sets:
        truth, *answers = {"mean": mean, "variance": variance}[statistic](rows)
        for i, answer in enumerate(answers):
            squares[i] += sum((answer() - truth) ** 2 for _ in range(runs))
    print(*(math.sqrt(square / (runs * len(data_sets))) for square in squares))
