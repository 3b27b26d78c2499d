"""Nanoseconds of CPU per draw of OpenDP's vector release: peer_opendp.py laplace|gaussian SCALE"""

import sys
import time

import opendp.prelude as dp

dp.enable_features("contrib")
noise, scale = sys.argv[1], float(sys.argv[2])
domain = dp.vector_domain(dp.atom_domain(T="i64"))
if noise == "laplace":
    mechanism = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale)
else:
    mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale)
draws = 50_000
zeros = [0] * draws
start = time.process_time()
mechanism(zeros)
print((time.process_time() - start) * 1e9 / draws)
