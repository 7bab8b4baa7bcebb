"""Faults on purpose: kills, full disks, damaged files, forgeries, interrupts, hostile clients; counted and published.

`python -m faults` runs every kind with its full count and writes docs/reliability.md. Read in this order: `count` (what
a kind reports), `kinds` (all of them), then one module a kind of fault, `page`.
"""
