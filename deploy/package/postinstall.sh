#!/bin/sh
# After installation or upgrade. Nothing is started that was not running: without a connection in /etc/parley/parley.env it could not be.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart parley.service 'parley@*.service'
fi
