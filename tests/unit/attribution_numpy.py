#!/usr/bin/env python3
"""Computes the estimate of one block again, from the rows that `bench_attribution --dump` writes, and compares
means and both variances to 1e-9: attribution_numpy.py BENCH_ATTRIBUTION [--worlds NAME]. The model:
docs/internals/attribution.md. Exit status 77: numpy is missing."""
import json
import os
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):  # Debian's, which has it
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: python3-numpy is not installed")
    sys.exit(77)

d = json.loads(subprocess.run([sys.argv[1], "--dump", *sys.argv[2:]], check=True, capture_output=True).stdout)
special = int(d["special"])
function, bound, prior_mean, their_x, their_model, their_cluster = np.array(d["columns"], float).T
n, clusters = len(function), int(d["clusters"])

X, y = np.zeros((len(d["rows"]), n)), np.zeros(len(d["rows"]))
variance, aged, cluster = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y), int)
for t, (age, ratio, v, idle, gradient, offset, cluster[t], entries) in enumerate(d["rows"]):
    since_clock = d["clock_age_ns"] - age
    X[t, :3] = idle, gradient, gradient * since_clock / d["window_ns"]
    v += (d["noise"] * ratio) ** 2
    for column, f, share, limit in entries:
        if column >= 0:
            X[t, column] += share
        else:  # functions without a column: two common coefficients for each function, and variance
            X[t, 1 + 2 * f:3 + 2 * f] += share * limit, share
            v += (share * limit) ** 2
    aged[t] = 1 + (age / d["drift_time_ns"]) ** 2
    variance[t] = d["scale"] * aged[t] * v
    y[t] = ratio - gradient * (d["offset_ns"] + d["drift"] * since_clock - offset) / 1e3

sd = np.empty(n)
sd[:3] = d["idle_sd"], d["clock_sd_us"], d["drift_sd_us"]
sd[3:special] = d["profile_sd"] / np.sqrt(np.arange(special - 3) // 2 + 1)
means, others = function[special:] == 0, np.maximum(function[special:], 1)
sd[special:] = bound[special:] * np.where(means, d["prior_sd"], d["profile_sd"] / np.sqrt(others))
prior = np.where((function == 0) & (np.arange(n) >= special), prior_mean, 0)

information = X.T @ (X / variance[:, None]) + np.diag(sd ** -2)
covariance = np.linalg.inv(information)
x = covariance @ (X.T @ (y / variance) + prior / sd ** 2)

# cluster-robust variance: scores of rows that begin at the same phase of the same kernel
leverage = (X ** 2 @ np.diag(covariance)) / variance  # without covariances
residual = (y - X @ x) / (1 - np.minimum(leverage, d["leverage_max"]))
score = np.zeros((clusters, n))
np.add.at(score, cluster, X * (residual / variance)[:, None])
moved = score @ covariance
squares, fourths = (moved ** 2).sum(0), (moved ** 4).sum(0) + 1e-300
freedom = np.maximum(squares ** 2 / fourths, 1)
robust = squares * (1 + 1.3 / freedom + 1.2 / freedom ** 2) ** 2

mean = np.arange(special, int(d["means_end"]))
worst = {"mean": np.abs(x - their_x)[mean].max(),
         "variance": (np.abs(np.diag(covariance) - their_model) / their_model)[mean].max(),
         "cluster variance": (np.abs(robust - their_cluster) / their_cluster)[mean].max()}
print(f"{len(y)} rows, {n} columns, {len(mean)} means; largest difference:",
      ", ".join(f"{name} {value:.1e}" for name, value in worst.items()))
sys.exit(0 if len(mean) > 0 and max(worst.values()) <= 1e-9 else 1)
