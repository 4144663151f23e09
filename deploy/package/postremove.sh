#!/bin/sh
# After removal. What the daemon wrote (keys of its broker) goes with purge, and not before.
set -e
if [ "$1" = purge ]; then
  rm -rf /var/lib/parley /var/lib/private/parley
  rmdir --ignore-fail-on-non-empty /etc/parley 2>/dev/null || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
