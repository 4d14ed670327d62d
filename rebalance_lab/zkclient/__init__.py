"""What the 0.8 consumer and the 0.8 controller both stood on: endless retries, one event queue,
listeners that are fired again on a new session, two reads to set a watch again."""

from rebalance_lab.zkclient.client import ZkClient
from rebalance_lab.zkclient.listeners import ChildListener, DataListener, StateListener, ZkTimeoutException

__all__ = ["ChildListener", "DataListener", "StateListener", "ZkClient", "ZkTimeoutException"]
