"""The explorer, `qkv serve`: request -> middleware -> route -> pool or registry -> library.

Reading order: `server` opens a socket and runs `app`, which puts the `middleware`, the `routes` and what they share
together: `compute_pool` (short computations), `claim_workers` (killable processes that check claims), `job_manager` and
`job_tasks` (long jobs), `model_registry` (models that can be asked). Processes begin with `worker_process`.
`schemas` and `limits` are shared by all.
"""
