"""ZkClient, which the consumer and the controller of Kafka 0.8 both use: endless retries, one event queue, listeners
that are called again on a new session, and two reads to set a watch again."""

from rebalance_lab.zkclient.client import ZkClient
from rebalance_lab.zkclient.listeners import ChildListener, DataListener, StateListener, ZkTimeoutException

__all__ = ["ChildListener", "DataListener", "StateListener", "ZkClient", "ZkTimeoutException"]
