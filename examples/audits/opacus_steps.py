"""Five steps of private training by Opacus on four records: prints the weight after each of so many trainings.

Noise multiplier 4, clip norm 1, Poisson samples with rate one half, learning rate 1, sums (not means) of gradients: so that a record moves
the weight as far as it is allowed to.
"""

import csv
import sys
import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

DELTA = 1e-5
STEPS = 5


def train(x, y):
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=2),
        noise_multiplier=4.0,
        max_grad_norm=1.0,
        loss_reduction="sum",
    )
    taken = 0
    while taken < STEPS:
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = ((model(inputs) - labels) ** 2).sum()
            loss.backward()
            optimizer.step()
            taken += 1
            if taken == STEPS:
                break
    return engine.get_epsilon(DELTA), next(model.parameters()).item()


def main():
    path, lines = sys.argv[1], int(sys.argv[2])
    with open(path) as file:
        rows = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]
    x = torch.tensor([[x] for x, _ in rows])
    y = torch.tensor([[y] for _, y in rows])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if lines == 0:
        print(train(x, y)[0])
    for _ in range(lines):
        print(train(x, y)[1])


main()
