"""Randomized response on a vector of eight bits by OpenDP: prints so many answers, each as one number.

Until 0.15.0 the last bit was released without noise (opendp/opendp issue 2707, fixed by pull request 2708).
"""

import sys

import opendp.prelude as dp

dp.enable_features("contrib")

# With f = 0.5 a bit is kept with probability 0.75; two vectors of weight at most one differ in up to two bits.
F = 0.5


def main():
    path, lines = sys.argv[1], int(sys.argv[2])
    with open(path) as file:
        bits = bytes([int(file.read().split()[1])])
    domain = dp.bitvector_domain(max_weight=1)
    respond = dp.m.make_randomized_response_bitvec(domain, dp.discrete_distance(), f=F)
    if lines == 0:
        print(respond.map(1))
    for _ in range(lines):
        print(int.from_bytes(respond(bits), "little"))


main()
