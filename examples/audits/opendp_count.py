"""A count of rows with Laplace noise by OpenDP, at epsilon 1: prints so many independent answers."""

import sys

import opendp.prelude as dp

dp.enable_features("contrib")


def main():
    path, lines = sys.argv[1], int(sys.argv[2])
    with open(path) as file:
        rows = file.read().split()[1:]
    space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    assert count.map(1) <= 1.0 + 1e-9
    for _ in range(lines):
        print(count(rows))


main()
