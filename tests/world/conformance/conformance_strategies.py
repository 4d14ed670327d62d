"""What the random sessions ask for: few paths, so that requests meet."""

from __future__ import annotations

from hypothesis import strategies as st

from rebalance_lab.world.ports import Check, ChildrenRead, Create, Delete, GetRead, Set

#: More sessions than this are not opened.
SESSIONS_LIMIT = 3

paths = st.sampled_from(["/a", "/a/x", "/a/y", "/a/x/deep", "/b"])
places = st.sampled_from(["", "/a", "/a", "/a/x", "/a/y", "/b"])
watches = st.sampled_from([True, True, False])
payloads = st.sampled_from([b"", b"1", b"22"])
versions = st.sampled_from([-1, -1, 0, 1, 2])
picks = st.integers(0, SESSIONS_LIMIT - 1)
flags = st.booleans()

#: Mostly such that all can be done: what is refused undoes the others and teaches less.
operations = st.lists(
    st.one_of(
        st.builds(Create, paths, payloads, ephemeral=flags, sequence=st.sampled_from([False, True, True])),
        st.builds(Set, places, payloads, version=versions),
        st.builds(Delete, paths, version=st.just(-1)),
        st.builds(Check, places, version=versions),
    ),
    max_size=5,
)
reads = st.lists(st.one_of(st.builds(GetRead, places), st.builds(ChildrenRead, places)), max_size=6)
