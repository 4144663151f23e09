#!/usr/bin/env bash
# Three servers with Patroni, etcd and HAProxy on loopback; Parley's daemon twice, senders, a worker in Python, a reader in SQL and mail; then
# the leader is killed, and the next one cut off. At the end the ledger of what was reported as committed is compared with what has arrived.
#
#   deploy/patroni/run.sh [--asynchronous]
#
# It needs Debian's patroni, etcd-server, etcd-client, haproxy, postgresql and python3-psycopg, and parley in the path or built here by Go.
# As root it runs the servers as the user postgres. It uses the addresses 127.0.0.1 to 127.0.0.4, keeps everything in a temporary folder, and
# stops what it has started. It takes about three minutes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

export SYNCHRONOUS=true
[[ ${1:-} != --asynchronous ]] || SYNCHRONOUS=false

export PG_PORT=${PG_PORT:-15432} API_PORT=${API_PORT:-18008} HAPROXY_PORT=${HAPROXY_PORT:-15000}
etcd_port=${ETCD_PORT:-12379}
addresses=(127.0.0.2 127.0.0.3 127.0.0.4)
names=(one two three)
hosts="127.0.0.2:$PG_PORT,127.0.0.3:$PG_PORT,127.0.0.4:$PG_PORT"
many="postgres://postgres@$hosts/shop?target_session_attrs=read-write"
proxied="postgres://postgres@127.0.0.1:$HAPROXY_PORT/shop"

work=$(mktemp -d)
chmod 0755 "$work"
as_postgres=()
((EUID != 0)) || { chown postgres "$work"; as_postgres=(setpriv --reuid postgres --regid postgres --init-groups); }
bin=$(pg_config --bindir 2>/dev/null || ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
parley=$(command -v parley || true)
[[ -n $parley ]] || { (cd "$here/../.." && go build -o "$work/parley" ./cmd/parley); parley=$work/parley; }

pids=()
declare -a patronis
clean_up() {
  touch "$work/stop"
  local data pid
  disown -a # the shell says nothing about those that are killed
  for pid in "${patronis[@]:-}"; do kill -KILL "$pid" 2>/dev/null || true; done
  for data in "$work"/data.*; do
    "${as_postgres[@]}" "$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true
  done
  for pid in "${pids[@]}"; do { kill -CONT "$pid" && kill -KILL "$pid"; } 2>/dev/null || true; done
  sleep 1
  if [[ -n ${KEEP:-} ]]; then echo "the logs are in $work"; else rm -rf "$work"; fi
}
trap clean_up EXIT

say() { printf '%s  %s\n' "$(date +%T)" "$*"; }

# await SECONDS WHAT COMMAND... waits until the command succeeds.
await() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < until)) || { echo "run.sh: $what did not come about; logs:" >&2; tail -n 5 "$work"/*.log >&2; exit 1; }
    sleep 0.5
  done
}

start_patroni() { # NUMBER
  local i=$1
  PATRONI_NAME=${names[i]} PATRONI_ETCD3_HOST=127.0.0.1:$etcd_port \
    PATRONI_RESTAPI_LISTEN=${addresses[i]}:$API_PORT PATRONI_RESTAPI_CONNECT_ADDRESS=${addresses[i]}:$API_PORT \
    PATRONI_POSTGRESQL_LISTEN=${addresses[i]}:$PG_PORT PATRONI_POSTGRESQL_CONNECT_ADDRESS=${addresses[i]}:$PG_PORT \
    PATRONI_POSTGRESQL_DATA_DIR=$work/data.$i PATRONI_POSTGRESQL_BIN_DIR=$bin PATRONI_POSTGRESQL_PGPASS=$work/pgpass.$i \
    "${as_postgres[@]}" patroni "$work/patroni.yml" >>"$work/patroni.$i.log" 2>&1 &
  patronis[i]=$!
  pids+=("$!")
}

# leader prints the number of the server that takes writes and whose Patroni says so.
leader() {
  local i
  for i in 0 1 2; do
    if [[ $(curl --silent --max-time 2 --output /dev/null --write-out '%{http_code}' "http://${addresses[i]}:$API_PORT/primary") == 200 ]]; then
      echo "$i"
      return
    fi
  done
  return 1
}

another_leads() { local now; now=$(leader) && [[ $now != "$1" ]]; }
members_run() { # all standbys stream
  [[ $(psql --no-psqlrc --tuples-only --no-align "$many" --command "select count(*) from pg_stat_replication where state = 'streaming'") == "$1" ]]
}

say "etcd, three servers and HAProxy start (synchronous: $SYNCHRONOUS)"
sed "s/^\(    synchronous_mode.*\): true/\1: $SYNCHRONOUS/" "$here/patroni.yml" >"$work/patroni.yml"
ETCD_UNSUPPORTED_ARCH=$(dpkg --print-architecture) etcd --name run --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$etcd_port" \
  --advertise-client-urls "http://127.0.0.1:$etcd_port" --listen-peer-urls "http://127.0.0.1:$((etcd_port + 1))" \
  --initial-advertise-peer-urls "http://127.0.0.1:$((etcd_port + 1))" --initial-cluster "run=http://127.0.0.1:$((etcd_port + 1))" \
  >"$work/etcd.log" 2>&1 &
pids+=("$!")
for i in 0 1 2; do start_patroni "$i"; done
haproxy -f "$here/haproxy.cfg" >"$work/haproxy.log" 2>&1 &
pids+=("$!")
await 90 "a leader" leader
psql --no-psqlrc --quiet "postgres://postgres@$hosts/postgres?target_session_attrs=read-write" --command 'create database shop'
await 90 "replication to two standbys" members_run 2

"$parley" install --dsn "$many" >"$work/install.log"
psql --no-psqlrc --quiet --output "$work/tables.log" --set ON_ERROR_STOP=1 "$many" --file "$here/tables.sql"
for n in 1 2; do
  "$parley" serve --mail --dsn "$many" --log-format json >"$work/daemon.$n.log" 2>&1 &
  pids+=("$!")
done
for n in 1 2; do python3 "$here/load.py" send "$proxied" "$work" >"$work/sender.$n.log" 2>&1 & pids+=("$!"); done
for n in 1 2; do python3 "$here/load.py" work "$many" "$work" >"$work/worker.$n.log" 2>&1 & pids+=("$!"); done
sleep 10

first=$(leader)
say "the leader, ${names[first]}, is killed with its Patroni"
disown "${patronis[first]}"
kill -KILL "${patronis[first]}"
"${as_postgres[@]}" bash -c "kill -KILL \$(head -n 1 '$work/data.$first/postmaster.pid')"
start=$SECONDS
await 90 "another leader" another_leads "$first"
say "${names[$(leader)]} leads, after $((SECONDS - start)) s"
sleep 5
start_patroni "$first"
await 120 "the return of ${names[first]}" members_run 2
say "${names[first]} is a standby again"
sleep 5

second=$(leader)
say "${names[second]} is cut off: its Patroni stands still and its server goes on"
kill -STOP "${patronis[second]}"
start=$SECONDS
await 120 "another leader" another_leads "$second"
say "${names[$(leader)]} leads, after $((SECONDS - start)) s"
sleep 10
kill -CONT "${patronis[second]}"
await 120 "the return of ${names[second]}" members_run 2
say "${names[second]} is a standby again"
sleep 5

say "the senders end, and what is on its way arrives"
for pid in $(pgrep --full "load.py send $proxied $work"); do kill -TERM "$pid"; done
python3 "$here/load.py" check "$many" "$work"
