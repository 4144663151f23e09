#!/usr/bin/env bash
# Installs a deb that build.sh has made, as root, and holds it to what docs/guides/install.md promises: files, modes, what the unit starts, removal.
#
#   deploy/package/check.sh package.deb
#
# The database is a private server of the installed program. Where systemd runs the machine it starts the unit; elsewhere it starts the
# unit's own command, as a user without rights.
set -euo pipefail
package=$1

fail() { echo "check.sh: $*" >&2; exit 1; }

# owned PATH MODE reports whether the file is root's and has the mode.
owned() {
  [[ $(stat -c '%U:%G %a' "$1") == "root:root $2" ]] || fail "$1 is $(stat -c '%U:%G %a' "$1"), not root:root $2"
}

dpkg -s parley >/dev/null 2>&1 && fail "parley is installed already"
work=$(mktemp -d)
clean_up() {
  [[ -z ${daemon:-} ]] || kill "$daemon" 2>/dev/null || true
  [[ -z ${server:-} ]] || { kill "$server" 2>/dev/null && wait "$server" || true; }
  dpkg --purge parley >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean_up EXIT
dpkg --install "$package"

owned /usr/bin/parley 755
owned /etc/parley/parley.env 600
owned /usr/lib/systemd/system/parley.service 644
[[ -s /usr/share/doc/parley/copyright && -s /usr/share/doc/parley/parley.cdx.json ]] || fail "the documents are missing"
parley version
bash -c 'source /usr/share/bash-completion/completions/parley' || fail "the completion for bash cannot be read"
if command -v systemd-analyze >/dev/null; then
  systemd-analyze verify /usr/lib/systemd/system/parley.service /usr/lib/systemd/system/parley@.service
fi

chmod 0755 "$work"
parley up --tcp --data "$work/data" >"$work/up.log" 2>&1 &
server=$!
for _ in $(seq 600); do
  dsn=$(grep -m 1 '^postgres://.*@127.0.0.1' "$work/up.log" || true)
  [[ -z $dsn ]] || break
  kill -0 "$server" || fail "no server: $(cat "$work/up.log")"
  sleep 0.1
done
[[ -n $dsn ]] || fail "no server: $(cat "$work/up.log")"
parley install --dsn "$dsn"

# The worker of maps finds its library; where it could not be built, packages are without it.
if [[ -e /usr/lib/parley/parley-xslt ]]; then
  /usr/lib/parley/parley-xslt --version
fi

# What an administrator has written survives an installation of the same package.
printf "PARLEY_DSN='%s'\\n" "$dsn" >/etc/parley/parley.env
dpkg --install "$package"
grep -q "^PARLEY_DSN=" /etc/parley/parley.env || fail "an upgrade lost the configuration"

answers() { (exec 3<>/dev/tcp/127.0.0.1/9187 && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && head -n 1 <&3 | grep -q ' 200 ') 2>/dev/null; }

if [[ -d /run/systemd/system ]]; then
  systemctl start parley
else
  command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/parley.service)
  home=$work/home
  install -d -o nobody -m 0700 "$home"
  # As systemd does: the environment file is read by root, the command runs as somebody without rights.
  set -a
  # shellcheck source=/dev/null
  . /etc/parley/parley.env
  set +a
  # shellcheck disable=SC2086
  HOME=$home PARLEY_DATA=$home PARLEY_FLAGS="${PARLEY_FLAGS:-}" setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs \
    bash -c "exec $command" &
  daemon=$!
fi
for _ in $(seq 300); do
  answers && break
  [[ -z ${daemon:-} ]] || kill -0 "$daemon" || fail "the daemon ended"
  sleep 0.1
done
answers || fail "the daemon does not say that it is ready"

if [[ -n ${daemon:-} ]]; then
  kill -TERM "$daemon"
  wait "$daemon" || fail "the daemon ended with exit code $?"
  daemon=
fi
dpkg --remove parley
[[ -e /etc/parley/parley.env ]] || fail "removal took the configuration"
# A private server of root's stands where the daemon would have its keys. Purging must not take it.
kept=/var/lib/parley/kept-by-check
[[ -d /var/lib/parley ]] || made=yes
mkdir -p "$kept"
dpkg --purge parley
[[ -d $kept ]] || fail "purge took /var/lib/parley, where parley up keeps a private server"
rmdir "$kept"
[[ -z ${made:-} ]] || rmdir /var/lib/parley
[[ ! -e /etc/parley && ! -e /usr/bin/parley ]] || fail "something is left: $(ls -d /etc/parley /usr/bin/parley 2>/dev/null)"
echo "the package installs, starts, stops and goes"
