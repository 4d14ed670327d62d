"""Z7b: members report a rebalance that they do not carry out when the first broker comes."""

from counterfeit import Counterfeit, trial
from counterfeit_pretenders import members, pretending

from rebalance_lab.history.files import History

SETTINGS = {"members": "4", "brokers": "0", "latency_min_us": "0", "latency_max_us": "100"}


def false(seed: int) -> History:
    with pretending(members, attempts=1):
        return trial("herd", seed, settings=SETTINGS)


COUNTERFEIT = Counterfeit(
    claim="Z7b",
    check="broker_change_noticed",
    world="As `z7b_attempts_in_name_only`, and there is no broker before the one that comes, or after it. An attempt "
    "that finds no broker ends at once, so these look as they must, but for the warning of it.",
    false=false,
    honest=lambda seed: trial("herd", seed, settings=SETTINGS),
)
