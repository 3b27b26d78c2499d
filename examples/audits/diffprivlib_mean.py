"""The mean of a column by diffprivlib, at epsilon 1: prints so many independent answers."""

import csv
import sys

import diffprivlib.tools as tools


def main():
    path, lines = sys.argv[1], int(sys.argv[2])
    with open(path) as file:
        ages = [float(row["age"]) for row in csv.DictReader(file)]
    for _ in range(lines):
        print(tools.mean(ages, epsilon=1.0, bounds=(0, 100)))


main()
