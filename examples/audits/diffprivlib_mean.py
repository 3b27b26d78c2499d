"""The mean of a column by diffprivlib, at epsilon 1: prints so many independent answers.

Noise is a float that is added to a float: the last binary digits of the sum tell which number it was added to (IBM/differential-privacy-library
issue 94; Haney and others, arXiv:2207.13793).
"""

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
