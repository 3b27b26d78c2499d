"""Scattering by kymatio, on one thread.

Usage: peer_scattering.py SIDE PLANES numpy|torch BATCH. A picture has so many planes (colours) of SIDE by SIDE pixels. For each line on standard
input it transforms batches for a second of CPU time at least, and prints pictures per second of CPU time.
"""
import sys
import time

import numpy
import torch

SIDE, PLANES, FRONTEND, BATCH = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
torch.set_num_threads(1)
torch.set_grad_enabled(False)
pictures = numpy.random.default_rng(1).random((BATCH, PLANES, SIDE, SIDE), dtype=numpy.float32)
if FRONTEND == "torch":
    from kymatio.torch import Scattering2D

    pictures = torch.from_numpy(pictures)
else:
    from kymatio.numpy import Scattering2D

scattering = Scattering2D(J=2, shape=(SIDE, SIDE), L=8)
scattering(pictures)
for _ in sys.stdin:
    batches, start = 0, time.process_time()
    while time.process_time() - start < 1.0:
        scattering(pictures)
        batches += 1
    print(BATCH * batches / (time.process_time() - start), flush=True)
