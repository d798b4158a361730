"""Nightly runs under asv: a commit for every run, so that asv draws an unchanged commit again and again.

asv names a result by its commit: measured again, the same commit's old numbers are overwritten. So every nightly run
gets another commit in a small repository that holds nothing else, and asv gets that commit.

    reports/nights/<machine>.jsonl   the ledger: one line for each run; kept
    reports/asv-nights/              asv's results, by run; kept
    .prism-bench/asv/runs.git        the repository, made again from the ledgers: the same lines give the same commits
    .prism-bench/asv/asv.json        asv's configuration for it: asv.conf.json with the places changed
"""

from prism_bench.extensions.ci.asv_runs.handover import AsvProject, hand_over, project_at

__all__ = ["AsvProject", "hand_over", "project_at"]
