#!/usr/bin/env bash
# Builds what a release consists of: the SQL that installs the schema; for each architecture a binary, a deb, an rpm and a list of what is in it
# (SBOM); and the checksums of all.
#
#   deploy/package/build.sh [folder] [architecture ...]
#
# The folder is dist/ when none is named, the architectures are amd64 and arm64. The same commit and version of Go give the same binaries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

dist=${1:-dist}
shift || true
architectures=("$@")
((${#architectures[@]} > 0)) || architectures=(amd64 arm64)

VERSION=$(sed -n 's/^\tRelease = "\(.*\)"$/\1/p' version.go)
export VERSION
packaging="go tool -modfile=.ci/packaging/go.mod"

mkdir -p "$dist"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# Completions are those of the program; it is built for this machine to write them.
go build -o "$stage/native" ./cmd/parley
for shell in bash zsh fish; do
  "$stage/native" completion "$shell" >"$stage/completion.$shell"
done

# worker ARCHITECTURE builds parley-xslt, by which maps in XSLT run, and prints the configuration of the packages: with it, where a C
# compiler and libxslt of that architecture are here. Packages are without it elsewhere, and the binary can build it.
worker() {
  local compiler=gcc
  case $1 in
  amd64) [[ $(uname -m) == x86_64 ]] || compiler=x86_64-linux-gnu-gcc ;;
  arm64) [[ $(uname -m) == aarch64 ]] || compiler=aarch64-linux-gnu-gcc ;;
  esac
  cp -r internal/flow/mapping/parley-xslt "$STAGE/worker"
  rm -f "$STAGE/worker/parley-xslt"
  if make --silent -C "$STAGE/worker" parley-xslt CC="$compiler" CFLAGS="-O2 -ffile-prefix-map=$STAGE/worker=." >"$STAGE/worker.log" 2>&1; then
    sed 's|^contents:|&\n  - src: ${STAGE}/worker/parley-xslt\n    expand: true\n    dst: /usr/lib/parley/parley-xslt\n    file_info: {mode: 0755}|' \
      deploy/package/nfpm.yaml
  else
    echo "the packages for $1 have no parley-xslt: $compiler cannot build it ($(head -n 1 "$STAGE/worker.log"))" >&2
    cat deploy/package/nfpm.yaml
  fi
}

"$stage/native" install --print >"$dist/parley_${VERSION}_install.sql"

for ARCH in "${architectures[@]}"; do
  STAGE=$stage/$ARCH
  export ARCH STAGE
  mkdir -p "$STAGE"
  cp "$stage"/completion.* "$STAGE"
  for unit in deploy/systemd/*.service; do
    sed 's|/usr/local/bin/parley|/usr/bin/parley|; s|Copy to /etc/systemd/system, and see|See|' "$unit" >"$STAGE/$(basename "$unit")"
  done
  CGO_ENABLED=0 GOOS=linux GOARCH=$ARCH go build -trimpath -ldflags "-s -w" -o "$STAGE/parley" ./cmd/parley
  $packaging cyclonedx-gomod bin -json -version "v$VERSION" -output "$STAGE/parley.cdx.json" "$STAGE/parley" 2>"$STAGE/sbom.log" ||
    { cat "$STAGE/sbom.log" >&2; exit 1; }
  worker "$ARCH" >"$STAGE/nfpm.yaml"
  $packaging nfpm package --config "$STAGE/nfpm.yaml" --packager deb --target "$dist/" >&2
  $packaging nfpm package --config "$STAGE/nfpm.yaml" --packager rpm --target "$dist/" >&2
  cp "$STAGE/parley" "$dist/parley_${VERSION}_linux_$ARCH"
  cp "$STAGE/parley.cdx.json" "$dist/parley_${VERSION}_linux_$ARCH.cdx.json"
done
(cd "$dist" && sha256sum parley[-_]* >SHA256SUMS)
