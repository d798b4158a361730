"""Published figures of the design documents: their figures, budgets and rules, compared with what a record measured.

The documents' figures are quoted in `published.toml` and never passed off as measured. They bind nobody: none of them
is a finding of a run, and none closes the gate.
"""

from prism_bench.extension import Extension, SitePage

EXTENSION = Extension(
    "published",
    commands=("command",),
    pages=(SitePage("published", "Published figures", "page:page", "guides/measuring.html"),),
    rules=(
        "metric", "label", "slow_mean_us", "high_variance_cv", "outlier_max_over_mean", "target_mean_us", "target_cv",
        "target_calls_per_second",
    ),
)  # fmt: skip
