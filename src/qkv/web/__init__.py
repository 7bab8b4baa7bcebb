"""The explorer, `qkv serve`: request -> middleware -> route -> pool or registry -> library.

Reading order: `server` opens a socket and runs `app`, which puts the `middleware`, the `routes` and what they share
together: `compute_pool` (short computations), `claim_workers` (killable processes that check claims), `job_manager` and
`job_tasks` (long jobs), `model_registry` (models that can be asked). Processes begin with `worker_process`.
`read_deadline` ends slow connections; `static_files` and `documents` (with `document_formulas`) serve pages;
`sheet_workers` grades sheets, `head_worker` and `head_tasks` open models, and `killable_process` is what these
processes share. `claim_examples`, `sheet_example`, `noise_scenario`, `wiring_rules`, `wiring_derivation` and
`code_snippets` are what single pages show. `schemas` and `limits` are shared by all.
"""
