#!/bin/sh
# After removal. What the daemon of the unit wrote (keys of its broker) goes with purge, and not before. Messages never go: a private PostgreSQL,
# which parley up keeps in the same place when root calls it, stays.
set -e
if [ "$1" = purge ]; then
  state=/var/lib/private/parley
  if [ -d "$state" ] && [ ! -e "$state/cluster" ]; then
    rm -rf "$state"
    if [ -L /var/lib/parley ]; then rm -f /var/lib/parley; fi
  fi
  rmdir --ignore-fail-on-non-empty /etc/parley 2>/dev/null || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
