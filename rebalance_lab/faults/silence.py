"""How silence between a member and ZooKeeper affects the member's session: bounds from the protocol.

S is the session timeout, T the server's tick; times count from the start of the silence.

- A client pings at the latest when it has sent nothing for S/3 (ClientCnxn: half of its readTimeout, which
  is 2S/3). So each side last heard the other at most S/3 before the silence.
- A server ends a session at the first tick after S without a message (ExpiryQueue); in an ensemble S counts
  from the follower's next report to the leader, which comes every half tick (Learner.ping). So the session
  ends after 2S/3 at the earliest, and after S + T at the latest, T/2 later in an ensemble.
- A client gives up its connection 2S/3 after it last heard something: after S/3 at the earliest, after
  2S/3 at the latest. With one server it waits for 1 to 2 s before the next, with several for up to 1 s
  (`world.zk.server_list`); it cannot learn of its session's end before that.
- TCP sends lost data again after 200 ms, then after twice as long each time. So data arrive after the cut
  within the cut's length plus 200 ms.
- The others are notified of the session's end at once, and need at most the time of two attempts with the
  fetchers' stop and the back-off of each: an attempt that meets a partition that another living member has
  not released yet is repeated after a back-off. This bounds the time and not the number of attempts, which
  may be larger. No member waits for the back-off after the last attempt; it is counted to allow for the requests.
"""

from __future__ import annotations

from rebalance_lab.trials.plan import Plan
from rebalance_lab.world.zk.server_list import JAVA_WAITS

#: TCP's first retransmission (Linux).
RETRANSMISSION_MS = 200


def latest_end_ms(plan: Plan, *, to_server: bool = True) -> int:
    """The latest end of a silent member's session, in ms from the begin of the silence. `to_server`: the server hears
    nothing; else it hears the member's pings until the member gives up the connection."""
    session_ms, tick_ms = plan.number("session_timeout_ms"), plan.number("tick_ms")
    report_ms = tick_ms // 2 if plan.number("servers") > 1 else 0
    return session_ms + tick_ms + report_ms + (0 if to_server else 2 * session_ms // 3)


def pause_keeps_session(plan: Plan, pause_ms: int) -> bool:
    """Whether a member paused for so long keeps its connection: it goes on before it has heard nothing for 2S/3."""
    return 3 * pause_ms <= plan.number("session_timeout_ms")


def pause_outlives_session(plan: Plan, pause_ms: int, *, reported: bool = True) -> bool:
    """Whether a member paused for so long surely wakes as a zombie: it has lost its connection, and works beside
    others that have taken over while it waits for the next connection. `reported`: both report work for at least a
    period. In an ensemble this is never sure, as the member may connect again and learn of its session's end at once.
    False: it may happen, or not."""
    reconnect_ms = JAVA_WAITS.round_us // 1000 if plan.number("servers") == 1 else 0
    if reported and reconnect_ms < plan.number("work_period_ms"):
        return False
    lost = 3 * pause_ms > 2 * plan.number("session_timeout_ms")
    return lost and pause_ms + reconnect_ms > latest_end_ms(plan) + _takeover_ms(plan, reported=reported)


def cut_keeps_session(plan: Plan, cut_ms: int) -> bool:
    """Whether a member cut off for so long keeps its connection: a ping that was lost arrives, and is answered, in
    time.

    The ping is due S/3 after the member last heard something, and the member gives up another S/3 later. TCP sends
    the ping again; it arrives at most 2 * cut_ms + 200 ms after it was lost.
    """
    return 3 * (2 * cut_ms + RETRANSMISSION_MS) <= plan.number("session_timeout_ms")


def cut_outlives_session(plan: Plan, cut_ms: int, *, to_server: bool) -> bool:
    """Whether a member cut off for so long is surely a zombie: it keeps working, and learns nothing before the cut
    ends. False: it may be one, or not."""
    return cut_ms > latest_end_ms(plan, to_server=to_server) + _takeover_ms(plan)


def _takeover_ms(plan: Plan, *, reported: bool = True) -> int:
    """The time from a session's end until another member has claimed its partitions and `reported` work on them."""
    attempt_ms = plan.number("rebalance_backoff_ms") + plan.number("fetcher_stop_ms")
    return 2 * attempt_ms + (plan.number("work_period_ms") if reported else 0)
