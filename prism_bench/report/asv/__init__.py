"""Our pages inside asv's site, and the whole site made to open from disk with no network.

`asv.conf.json` names the plugin: `"plugins": [".prism_bench.report.asv.publisher"]`. The leading dot matters: asv
looks for a name without one among its own modules only, and reports nothing when it is not there.
"""
