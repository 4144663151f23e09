#!/bin/sh
# Before removal: deb calls it with "remove", rpm with 0 when no other version comes. An upgrade stops nothing; postinstall.sh restarts.
set -e
if [ "$1" = remove ] || [ "$1" = 0 ]; then
  if [ -d /run/systemd/system ]; then
    systemctl disable --now parley.service
    systemctl stop 'parley@*.service'
  fi
fi
