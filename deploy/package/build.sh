#!/usr/bin/env bash
# Builds what a release consists of: for each architecture a binary, a deb, an rpm and a list of what is in it (SBOM), and the checksums of all.
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
  $packaging nfpm package --config deploy/package/nfpm.yaml --packager deb --target "$dist/" >&2
  $packaging nfpm package --config deploy/package/nfpm.yaml --packager rpm --target "$dist/" >&2
  cp "$STAGE/parley" "$dist/parley_${VERSION}_linux_$ARCH"
  cp "$STAGE/parley.cdx.json" "$dist/parley_${VERSION}_linux_$ARCH.cdx.json"
done
(cd "$dist" && sha256sum parley[-_]* >SHA256SUMS)
