#!/usr/bin/env bash
# Holds the chart to helm's linter, with its defaults and with everything switched on, and shows what it makes of both.
#
#   deploy/helm/check.sh
#
# Without helm in the path it builds helm with Go, which takes some minutes the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

version=v3.19.2
helm=(helm)
command -v helm >/dev/null || helm=(go run "helm.sh/helm/v3/cmd/helm@$version")

everything=(
  --set mail=true,flow=true,console.enabled=true,console.readOnly=true,endpoint.enabled=true,endpoint.advertise=broker.example.com:4022
  --set identitySecret=parley-identity,podMonitor.enabled=true,database.listenKey=direct,schema.secret=parley-owner
  --set 'flags={--allow-webhook=https://shop.example.com/in}'
  --set 'env[0].name=OTEL_EXPORTER_OTLP_ENDPOINT,env[0].value=http://collector:4317'
)
"${helm[@]}" lint --strict parley
"${helm[@]}" lint --strict parley "${everything[@]}"
"${helm[@]}" template shop parley --kube-version 1.31 >/dev/null
"${helm[@]}" template shop parley --kube-version 1.31 "${everything[@]}"
if "${helm[@]}" template shop parley --kube-version 1.31 --set database.sekret=x >/dev/null 2>&1; then
  echo "check.sh: a value that the chart does not have was taken" >&2
  exit 1
fi
