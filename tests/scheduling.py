"""Sharing tests out to processes as `--dist loadgroup` does, at the same cost for the last of 14,000 as for the first.

xdist's own goes through all units that a process ever had, and through all tests for a unit's place, at each test.
"""

from collections import deque

from xdist.scheduler import LoadGroupScheduling


class Sharing(LoadGroupScheduling):
    """Groups whole, in the order of xdist's; a process is given more before it has ended what it has."""

    AHEAD = 4  # tests that a process has while it waits for more: many take a millisecond

    def __init__(self, config, log=None):
        super().__init__(config, log)
        self._places = {}

    def mark_test_complete(self, node, item_index, duration=0):
        nodeid = self.registered_collections[node][item_index]
        scope = self._split_scope(nodeid)
        unit = self.assigned_work[node].get(scope, {nodeid: False})
        unit[nodeid] = True
        if all(unit.values()):
            self.assigned_work[node].pop(scope, None)
        self._reschedule(node)

    def _assign_work_unit(self, node):
        if node not in self._places:
            self._places[node] = {nodeid: place for place, nodeid in enumerate(self.registered_collections[node])}
        left = deque()
        while self.workqueue and len(left) < self.AHEAD:
            scope, unit = self.workqueue.popitem(last=False)
            self.assigned_work[node][scope] = unit
            left += [self._places[node][nodeid] for nodeid, ended in unit.items() if not ended]
        node.send_runtest_some([*left])
