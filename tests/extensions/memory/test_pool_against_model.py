"""The pool against a model, in random order: blocks have one user, counts agree, limits hold."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from prism_bench.extensions.memory import PoolLimits, SizeClassPool
from prism_bench.extensions.memory.pool import class_of
from tests.extensions.memory.fake_device import FakeDevice

STREAMS = st.integers(0, 2)
SIZES = st.one_of(st.sampled_from((400, 512, 1000)), st.integers(1, 6000), st.sampled_from((65_536, 1 << 20)))
CAPACITY = 3 << 20


class PoolMachine(RuleBasedStateMachine):
    """`uses[address]` is the position of each stream at the block's last release; its next use must come after them."""

    @property
    def rounded(self):
        return sum(lease.held for lease in self.leases)

    def __init__(self):
        super().__init__()
        self.device = FakeDevice(CAPACITY)
        self.limits = PoolLimits(cap=256 << 10, per_class=3, seconds=10, least=512, slack=0.25)
        self.pool = SizeClassPool(self.device, self.limits)
        self.leases, self.uses, self.requests, self.peak = [], {}, 0, 0

    @rule(size=SIZES, stream=STREAMS)
    def allocate(self, size, stream):
        self.device.current, waits = stream, len(self.device.waits)
        try:
            lease = self.pool.allocate(size)
        except MemoryError:
            assert 0 == self.pool.state().free
            assert CAPACITY < self.rounded + size + self.limits.least
            return
        self._is_free_to_use(lease, stream, self.device.waits[waits:])
        assert lease.held == self.device.blocks[lease.address] >= size
        roomy = self.rounded + class_of(size, self.limits.least) <= CAPACITY
        assert not roomy or lease.held == class_of(size, self.limits.least)
        assert all(lease.address != other.address for other in self.leases)
        self.leases.append(lease)
        self.requests += 1
        self.peak = max(self.peak, self.rounded)

    def _is_free_to_use(self, lease, stream, waits):
        """Require that every earlier use is on this stream, finished, or waited for."""
        for other, place in self.uses.pop(lease.address, {}).items():
            waited = any(mark[0] == other and mark[1] >= place for to, mark in waits if to == stream)
            assert other == stream or waited or self.device.done.get(other, 0) >= place

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), stream=STREAMS, works=st.booleans())
    def free(self, data, stream, works):
        """Free a lease on any stream, with or without work there that uses it."""
        lease = self.leases.pop(data.draw(st.integers(0, len(self.leases) - 1)))
        self.device.current, home = stream, lease._block.stream
        if works:
            self.device.work(home)
            self.device.work(stream)
        self.uses[lease.address] = {used: self.device.enqueued.get(used, 0) for used in (home, stream)}
        self.pool.free(lease)

    @rule(stream=STREAMS)
    def finish(self, stream):
        self.device.finish(stream)

    @rule(seconds=st.floats(0, 8))
    def time_passes(self, seconds):
        self.device.time += seconds

    @rule()
    def sweep(self):
        self.pool.sweep()
        assert all(block.freed >= self.device.time - self.limits.seconds for block in self.pool._free)

    @rule()
    def clear(self):
        self.pool.clear()
        assert self.rounded == self.device.held

    @invariant()
    def the_books_agree(self):
        state = self.pool.state()
        assert sum(lease.asked for lease in self.leases) == state.asked
        assert self.rounded == state.live
        assert self.device.held == state.held
        assert (self.requests, self.requests - len(self.leases)) == (state.requests, state.releases)
        assert len(self.device.blocks) == len(self.leases) + state.free_blocks
        assert state.misses == len(self.device.blocks) + sum(state.evictions.values())
        assert self.peak == state.peak_live

    @invariant()
    def the_limits_hold(self):
        state, sizes = self.pool.state(), [block.size for block in self.pool._free]
        assert state.free <= self.limits.cap
        assert all(sizes.count(size) <= self.limits.per_class for size in sizes)
        assert state.peak_held <= (1 + self.limits.slack) * max(state.peak_live, 1)

    @invariant()
    def free_blocks_lie_by_age(self):
        freed = [block.freed for block in self.pool._free]
        assert sorted(freed) == freed


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
