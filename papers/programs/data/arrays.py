# SPDX-License-Identifier: MIT
"""numpy's and Python's mathematical functions, errors included.  arrays.py TIMES"""

import math
import sys

import numpy

times = int(sys.argv[1])
x = numpy.linspace(0, 30, 2000)
for function in (numpy.sin, numpy.cos, numpy.tan, numpy.exp, numpy.log1p):
    print(repr(float(function(x).sum())), repr(float(function(x.astype(numpy.float32)).sum())))
print(repr(sum(math.sin(i % 50) + math.pow(i % 7, 0.5) + math.log(1 + i % 9) for i in range(20000 * times))))
for bad in (lambda: math.exp(1e9), lambda: math.log(-1), lambda: math.pow(0.0, -1)):
    try:
        bad()
    except (OverflowError, ValueError) as error:
        print(error)
