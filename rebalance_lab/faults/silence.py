"""What silence between a member and ZooKeeper does to the member's session: bounds by the protocol.

S is the session timeout, T the server's tick; times count from the start of the silence.

- A client pings at the latest when it has sent nothing for S/3 (ClientCnxn: half of its readTimeout, which
  is 2S/3). So each side last heard the other at most S/3 before the silence.
- A server ends a session at the first tick after S without a word (ExpiryQueue); in an ensemble S counts
  from the follower's next report to the leader, which comes every half tick (Learner.ping). So the session
  ends after 2S/3 at the earliest, and after S + T at the latest, T/2 later in an ensemble.
- A client gives its connection up 2S/3 after it last heard something: after S/3 at the earliest, after
  2S/3 at the latest. With one server it waits for 1 to 2 s before the next, with several for up to 1 s
  (`world.hosts`); it cannot learn of its session's end before that.
- What a cut network loses TCP sends again after 200 ms, then after twice as long each time: it arrives at
  most as long after the cut as the cut lasted, and 200 ms.
- The others are told of the session's end at once, and need at most the time of two attempts with the
  fetchers' stop and the back-off of each: an attempt that meets a partition that another living member has
  not released yet is repeated after a back-off. This bounds the time and not the number of attempts, which
  may be larger. The back-off after the last attempt is not waited for; it allows for the requests.
"""

from __future__ import annotations

from rebalance_lab.trials.plan import Plan
from rebalance_lab.world.hosts import JAVA_WAITS

#: TCP's first retransmission (Linux).
RETRANSMISSION_MS = 200


def latest_end_ms(plan: Plan, *, to_server: bool = True) -> int:
    """When the session of a silent member has ended at the latest. `to_server`: the server hears
    nothing; else it hears the member's pings until that gives up the connection."""
    session_ms, tick_ms = plan.number("session_timeout_ms"), plan.number("tick_ms")
    report_ms = tick_ms // 2 if plan.number("servers") > 1 else 0
    return session_ms + tick_ms + report_ms + (0 if to_server else 2 * session_ms // 3)


def pause_keeps_session(plan: Plan, pause_ms: int) -> bool:
    """A member so paused keeps its connection: it goes on before it has heard nothing for 2S/3."""
    return 3 * pause_ms <= plan.number("session_timeout_ms")


def pause_outlives_session(plan: Plan, pause_ms: int, *, reported: bool = True) -> bool:
    """A member so paused wakes as a zombie: it has lost its connection, and works while it waits for the next one,
    beside others that have taken over. `reported`: both report work for a period at least. In an ensemble that is
    never sure: the member may connect again, and learn of its session's end, at once. False: it may, or may not."""
    reconnect_ms = JAVA_WAITS.round_us // 1000 if plan.number("servers") == 1 else 0
    if reported and reconnect_ms < plan.number("work_period_ms"):
        return False
    lost = 3 * pause_ms > 2 * plan.number("session_timeout_ms")
    return lost and pause_ms + reconnect_ms > latest_end_ms(plan) + _takeover_ms(plan, reported=reported)


def cut_keeps_session(plan: Plan, cut_ms: int) -> bool:
    """A member so cut off keeps its connection: a ping that was lost arrives, and is answered, in time.

    The ping is due S/3 after the member last heard something, and the member gives up another S/3
    later. Sent again, it arrives at most 2 * cut_ms + 200 ms after it was lost.
    """
    return 3 * (2 * cut_ms + RETRANSMISSION_MS) <= plan.number("session_timeout_ms")


def cut_outlives_session(plan: Plan, cut_ms: int, *, to_server: bool) -> bool:
    """A member so cut off is a zombie: it works on, and learns nothing before the cut is over. False:
    it may be, or not."""
    return cut_ms > latest_end_ms(plan, to_server=to_server) + _takeover_ms(plan)


def _takeover_ms(plan: Plan, *, reported: bool = True) -> int:
    """From a session's end until another member has claimed its partitions, and has `reported` work on them."""
    attempt_ms = plan.number("rebalance_backoff_ms") + plan.number("fetcher_stop_ms")
    return 2 * attempt_ms + (plan.number("work_period_ms") if reported else 0)
