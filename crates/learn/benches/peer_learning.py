"""Steps of one model by torch, with Opacus's ghost clipping or without privacy, on one thread.

Usage: peer_learning.py MODEL BATCH ghost|plain|poisson. For each line on standard input it takes steps for half a second of CPU time and prints
examples per second of CPU time. A step is forward, backward, clipping and noise if there is any, and the update by SGD; with `poisson`, which is
ghost clipping too, it is a step of a training on 6,000 examples, whose batches come from the loader that Opacus makes for Poisson samples.
"""
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch
from torch import nn

MODEL, BATCH, MODE = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
torch.manual_seed(1)


def mlp(inputs):
    return nn.Sequential(nn.Linear(inputs, 1000), nn.ReLU(), nn.Linear(1000, 10)), (inputs,)


def cnn():
    layers = [
        nn.Conv2d(1, 16, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    ]
    return nn.Sequential(*layers), (1, 28, 28)


MODELS = {
    "mlp784": lambda: mlp(784),
    "mlp60": lambda: mlp(60),
    "logistic": lambda: (nn.Linear(784, 10), (784,)),
    "cnn": cnn,
    "audit": lambda: (nn.Sequential(nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 2)), (784,)),
}
model, shape = MODELS[MODEL]()
EXAMPLES = 6000 if MODE == "poisson" else BATCH
inputs, labels = torch.randn(EXAMPLES, *shape), torch.randint(0, 2 if MODEL == "audit" else 10, (EXAMPLES,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loss_of = nn.CrossEntropyLoss()
loader = None
if MODE != "plain":
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    model, optimizer, loss_of, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(inputs, labels), batch_size=BATCH),
        criterion=loss_of,
        noise_multiplier=1.1,
        max_grad_norm=1.0,
        poisson_sampling=MODE == "poisson",
        grad_sample_mode="ghost",
    )


def batches():
    while MODE == "poisson":
        yield from loader
    while True:
        yield inputs, labels


drawn = batches()


def step():
    x, y = next(drawn)
    optimizer.zero_grad()
    loss_of(model(x), y).backward()
    optimizer.step()


for _ in range(3):
    step()
for _ in sys.stdin:
    steps, start = 0, time.process_time()
    while time.process_time() - start < 0.5:
        step()
        steps += 1
    print(BATCH * steps / (time.process_time() - start), flush=True)
