"""One case by one peer, in a process of its own: prints CPU seconds of the computation and the epsilon (or sigma) found.

Usage: peer_accounting.py dp-accounting|prv-accountant CASE. Import and warm-up are not timed; nothing is cached between runs.
"""
import sys
import time
import warnings

warnings.filterwarnings("ignore")
TOOL, CASE = sys.argv[1], sys.argv[2]

DISTINCT = [("sampled", (0.001 + 0.0004 * i, 0.8 + 0.024 * i), 20) for i in range(50)]
CASES = {
    "gaussian": ([("gaussian", (20.0,), 512)], 1e-5),
    "laplace": ([("laplace", (20.0,), 512)], 1e-5),
    "c1": ([("sampled", (0.01, 4.0), 10_000)], 1e-5),
    "c2": ([("sampled", (256 / 60_000, 1.1), 14_062)], 1e-5),
    "c3": ([("sampled", (0.001, 0.8), 60_000)], 1e-5),
    "c4": ([("sampled", (0.001, 1.0), 1_000_000)], 1e-6),
    "c5": ([("sampled", (0.01, 0.5), 1_000)], 1e-5),
    "distinct": (DISTINCT, 1e-6),
}


def dp_accounting():
    import dp_accounting as dpa
    from dp_accounting.pld import privacy_loss_distribution as pld

    def one(kind, parameters):
        if kind == "gaussian":
            return pld.from_gaussian_mechanism(parameters[0])
        if kind == "laplace":
            return pld.from_laplace_mechanism(parameters[0])
        return pld.from_gaussian_mechanism(parameters[1], sampling_prob=parameters[0])

    if CASE == "calibration":
        from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

        def event(sigma):
            gaussian = dpa.PoissonSampledDpEvent(0.01, dpa.GaussianDpEvent(sigma))
            return dpa.SelfComposedDpEvent(gaussian, 1000)

        start = time.process_time()
        found = dpa.calibrate_dp_mechanism(PLDAccountant, event, 1.0, 1e-5)
        return time.process_time() - start, found
    parts, delta = CASES[CASE]
    one(*parts[0][:2])
    start = time.process_time()
    total = None
    for kind, parameters, count in parts:
        part = one(kind, parameters)
        part = part.self_compose(count) if count > 1 else part
        total = part if total is None else total.compose(part)
    found = total.get_epsilon_for_delta(delta)
    return time.process_time() - start, found


def prv_accountant():
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import (
        GaussianMechanism,
        LaplaceMechanism,
        PoissonSubsampledGaussianMechanism,
    )

    make = {
        "gaussian": lambda p: GaussianMechanism(p[0]),
        "laplace": lambda p: LaplaceMechanism(1 / p[0]),
        "sampled": lambda p: PoissonSubsampledGaussianMechanism(p[0], p[1]),
    }
    parts, delta = CASES[CASE]
    start = time.process_time()
    counts = [count for _, _, count in parts]
    variables = [make[kind](parameters) for kind, parameters, _ in parts]
    accountant = PRVAccountant(variables, eps_error=0.1, delta_error=delta / 1000, max_self_compositions=counts)
    found = accountant.compute_epsilon(delta, counts)[2]
    return time.process_time() - start, found


seconds, found = {"dp-accounting": dp_accounting, "prv-accountant": prv_accountant}[TOOL]()
print(seconds, found)
