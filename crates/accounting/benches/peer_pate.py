"""The published formulas of PATE, query by query, with numpy and scipy: a peer for ./bench pate.

Reads orders and then one histogram a line; prints CPU seconds, epsilon, expected answers and the smooth sensitivity.
Written from the formulas; no code of others is in it.
"""

import math
import sys
import time

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfc, erfcinv
from scipy.stats import norm

THRESHOLD, SIGMA1, SIGMA2, TEACHERS, DELTA = 200.0, 150.0, 40.0, 250, 1e-5


def log1mexp(x):
    return np.log(-np.expm1(x)) if x > -math.log(2) else np.log1p(-np.exp(x))


def log_q(counts, sigma):
    winner = int(np.argmax(counts))
    gaps = counts[winner] - np.delete(counts, winner)
    total = np.logaddexp.reduce(norm.logsf(gaps / (math.sqrt(2) * sigma)))
    return min(float(total), math.log(1 - 1 / len(counts)))


def theorem6(lq, sigma, orders):
    variance = sigma * sigma
    mu2 = sigma * math.sqrt(-lq)
    mu1 = mu2 + 1
    wins = log1mexp(lq)
    a = wins - log1mexp((lq + mu2 / variance) * (1 - 1 / mu2))
    b = mu1 / variance - lq / mu2
    return np.logaddexp(wins + (orders - 1) * a, lq + (orders - 1) * b) / (orders - 1)


def divergences(lq, sigma, orders):
    worst = orders / sigma**2
    mu2 = sigma * math.sqrt(-lq)
    mu1 = mu2 + 1
    if mu2 <= 1 or -lq <= mu2 / sigma**2:
        return worst
    room = (mu2 - 1) * mu2 / sigma**2 - mu2 * (math.log1p(1 / (mu1 - 1)) + math.log1p(1 / (mu2 - 1)))
    if lq > room:
        return worst
    return np.where(orders < mu1, np.minimum(worst, theorem6(lq, sigma, orders)), worst)


class Local:
    """Algorithms 3 to 5."""

    def __init__(self, sigma, classes, order):
        self.sigma, self.classes, self.order = sigma, classes, order
        self.worst = order / sigma**2
        high = -max((1 + 1 / sigma) ** 2, ((order - 0.99) / sigma) ** 2, 1 / sigma**2)
        excess = lambda lq: float(theorem6(lq, sigma, np.array([order]))[0]) - self.worst
        low = 2 * high
        while excess(low) > 0:
            low *= 1.5
        self.lq0 = high if excess(high) < 0 else brentq(excess, low, high)
        self.lq1 = math.log(self.shift(math.exp(self.lq0), 1))
        self.plateau = self.at(self.lq1)

    def shift(self, q, sign):
        others = (self.classes - 1) / 2
        return min(1.0, others * float(erfc(sign / self.sigma + erfcinv(q / others))))

    def cost(self, lq):
        return self.worst if lq >= self.lq0 else float(theorem6(lq, self.sigma, np.array([self.order]))[0])

    def at(self, lq):
        if self.lq1 <= lq <= self.lq0:
            lq = self.lq1
        q, cost = math.exp(lq), self.cost(lq)
        return max(self.cost(math.log(self.shift(q, -1))) - cost, cost - self.cost(math.log(self.shift(q, 1))))

    def by_distance(self, counts):
        found = np.full(TEACHERS, self.plateau)
        votes = np.sort(counts)[::-1].copy()
        lq = log_q(votes, self.sigma)
        if self.lq1 <= lq <= self.lq0:
            return found
        agree = lq > self.lq0
        for d in range(TEACHERS):
            found[d] = self.at(lq)
            if not (lq > self.lq0 and votes[1] > 0 if agree else lq < self.lq1):
                break
            step = 1 if agree else -1
            votes[0] += step
            votes[1] -= step
            votes[1:] = np.sort(votes[1:])[::-1]
            lq = log_q(votes, self.sigma)
        return found


def main():
    order, beta = float(sys.argv[1]), float(sys.argv[2])
    orders = np.array(sys.stdin.readline().split(), dtype=float)
    rows = [np.array(line.split(), dtype=float) for line in sys.stdin]
    start = time.process_time()
    total, answers = np.zeros(len(orders)), 0.0
    local = Local(SIGMA2, len(rows[0]), order)
    bounds = np.zeros(TEACHERS)
    tests = [
        float(divergences(min(lp, log1mexp(lp)), math.sqrt(2) * SIGMA1, np.array([order]))[0])
        for lp in (float(norm.logsf((THRESHOLD - v) / SIGMA1)) for v in range(TEACHERS + 1))
    ]
    steps = np.abs(np.diff(tests))
    for counts in rows:
        lp = float(norm.logsf((THRESHOLD - round(counts.max())) / SIGMA1))
        total += divergences(min(lp, log1mexp(lp)), math.sqrt(2) * SIGMA1, orders)
        total += math.exp(lp) * divergences(log_q(counts, SIGMA2), SIGMA2, orders)
        answers += math.exp(lp)
        bounds += local.by_distance(counts)
        most = int(round(counts.max()))
        for d in range(TEACHERS):
            near = [steps[i] for v in (most - d, most + d) for i in (v - 1, v) if 0 <= i < len(steps)]
            bounds[d] += max(near, default=0.0)
    epsilon = float(np.min(total - math.log(DELTA) / (orders - 1)))
    smooth = float(np.max(bounds * np.exp(-beta * np.arange(TEACHERS))))
    print(time.process_time() - start, epsilon, answers, smooth)


main()
