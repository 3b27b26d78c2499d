"""Linear regression by diffprivlib, at epsilon 1, for x in [0, 100] and y in [0, 1]: prints the coefficient of so many fits.

The noise on the sum of squares of x is scaled to the square of the lower bound of x alone (IBM/differential-privacy-library issue 105), which
is zero here: the sum is used without noise, and one record moves it by 10,000.
"""

import csv
import sys
import warnings

import numpy
from diffprivlib.models import LinearRegression


def main():
    path, lines = sys.argv[1], int(sys.argv[2])
    with open(path) as file:
        rows = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]
    x = numpy.array([[x] for x, _ in rows])
    y = numpy.array([y for _, y in rows])
    warnings.simplefilter("ignore")
    for _ in range(lines):
        model = LinearRegression(
            epsilon=1.0, bounds_X=(0, 100), bounds_y=(0, 1), fit_intercept=False
        )
        print(model.fit(x, y).coef_[0])


main()
