"""Read the average of two values with one query: the textbook's, and the shortest with the same weights."""

import math

import qkv

n, tol = 10, 1e-3
memory = qkv.Memory.orthonormal(n=n, d=16, seed=0)

book = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=tol, form="textbook")
short = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=tol)

print(f"smallest t, by the formula   {math.log((n - 2) * (1 - tol) / (2 * tol)):.6f}")
print(f"smallest t, as designed      {book.scale:.6f} and {short.scale:.6f}")
print(f"norm of the textbook query   {float(book.query.norm()):.6f}")
print(f"norm of the shortest query   {float(short.query.norm()):.6f}")
print(f"certified: with these ratios none is below {math.floor(1e6 * short.least_norm) / 1e6:.6f}")
print(f"certificates hold            {bool(book.certificate.verify())} and {bool(short.certificate.verify())}")
