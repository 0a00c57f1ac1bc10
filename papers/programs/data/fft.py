# SPDX-License-Identifier: MIT
"""The fast Fourier transform by its definition, which computes each factor when it needs it.  fft.py TIMES"""

import cmath
import sys


def fft(x: list[complex]) -> list[complex]:
    n = len(x)
    if n == 1:
        return x
    even, odd = fft(x[0::2]), fft(x[1::2])
    twisted = [cmath.exp(-2j * cmath.pi * k / n) * odd[k] for k in range(n // 2)]
    return [e + t for e, t in zip(even, twisted)] + [e - t for e, t in zip(even, twisted)]


signal = [complex((i * i) % 17 - 8, 0) for i in range(1024)]
for _ in range(int(sys.argv[1])):
    signal = fft(signal)
    largest = max(map(abs, signal))
    signal = [value / largest for value in signal]
print(signal[1], signal[700], sum(map(abs, signal)))
