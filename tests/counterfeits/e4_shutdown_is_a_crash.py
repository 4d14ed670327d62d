"""E4: a controller that answers a broker which asks to shut down at once, and moves none of its leaders."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.shutdowns import Shutdowns
from controller.stimuli import AnswerShutdown, Instruction, ShutdownAsked
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.error_codes import ErrorCode


def at_once(_self: Shutdowns, asked: ShutdownAsked) -> list[Instruction]:
    return [AnswerShutdown(asked, ErrorCode.NONE, ())]


def honest(seed: int) -> History:
    return trial("duties", seed, settings={"duty": "controlled-shutdown", "kill_at": "0"})


def false(seed: int) -> History:
    with patch.object(Shutdowns, "begin", at_once):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E4",
    check="duty_target",
    world="A broker that asks to shut down is told that it leads nothing any more, and goes. It still leads: others "
    "are elected when its session is gone, as if it had crashed, and then all is as it should be.",
    false=false,
    honest=honest,
)
