#!/bin/sh
# The server in the foreground, under the name and with the variables of ZooKeeper's own script.
set -eu

[ "${1:-}" = start-foreground ] || { printf 'usage: zkServer.sh start-foreground\n' >&2; exit 2; }
# shellcheck disable=SC2086 # flags are words
exec java "-Xmx${ZK_SERVER_HEAP:-1000}m" \
    "-Dzookeeper.log.dir=${ZOO_LOG_DIR}" \
    -Dlog4j2.configurationFile=/opt/zookeeper/log4j2.properties \
    ${JVMFLAGS:-} ${SERVER_JVMFLAGS:-} \
    -cp "/opt/zookeeper/lib/*:${ZOO_CONF_DIR}" \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "${ZOO_CONF_DIR}/zoo.cfg"
