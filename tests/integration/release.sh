#!/usr/bin/env bash
# scripts/release with the tools of this machine, twice, from two folders of builds: equal files; the checksums and the chart are
# right, the SBOM is valid and names each file with its libraries.
#
#   release.sh [KIND,...]      default: all but kinds for aarch64, which need as many builds again
#
# A package for aarch64 is compared with that for x86_64, file by file, if both kinds are made.
set -euo pipefail
cd "$(dirname "$0")/../.."
kinds=${1:-deb,rpm,bundle,chart,image}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $1"; exit 1; }
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || echo 1700000000)}"
export SOURCE_DATE_EPOCH
scripts/release --only "$kinds" --build "$work/first" "$work/one" >"$work/made"
cat "$work/made"
(cd "$work/one" && sha256sum --quiet -c SHA256SUMS) || fail "the checksums"
[ "$(wc -l <"$work/one/SHA256SUMS")" = $(($(ls "$work/one" | wc -l) - 1)) ] || fail "files without a checksum"
declare -A files=([deb]='occtrace_*_amd64.deb' [rpm]='occtrace-*.x86_64.rpm' [bundle]='occtrace-*-linux-x86_64.tar.gz'
                  [deb-arm64]='occtrace_*_arm64.deb' [rpm-arm64]='occtrace-*.aarch64.rpm' [bundle-arm64]='occtrace-*-linux-aarch64.tar.gz'
                  [chart]='occtrace-chart-*.tgz' [image]='occtrace-image-*.tar')
made() { echo "$work/one/"${files[$1]}; } # kind: its file
for kind in ${kinds//,/ }; do
  [ -e "$(made "$kind")" ] || grep -q "^left out: $kind: " "$work/made" || fail "no $kind, and no reason"
done
for kind in deb rpm bundle; do
  ! [ -e "$(made $kind-arm64)" ] || ! [ -e "$(made $kind)" ] ||
    /usr/bin/python3 tests/integration/aarch64_package.py "$(made $kind-arm64)" "$(made $kind)" || fail "$kind-arm64 beside $kind"
done
for bundle in "$work"/one/*-linux-*.tar.gz; do
  machine=${bundle##*-linux-} machine=${machine%.tar.gz}
  [ ! -e "$bundle" ] || [ -e "$(echo "$work"/one/*"_$machine.whl")" ] || fail "no wheel for $machine"
done
if [[ $kinds = *chart* ]]; then
  tar tzf "$work/one"/occtrace-chart-*.tgz >"$work/chart"
  for file in Chart.yaml values.yaml files/fleet.json files/occtrace.rules.yaml templates/daemonset.yaml; do
    grep -qx "occtrace/$file" "$work/chart" || fail "the chart has no $file"
  done
  ! tar tvzf "$work/one"/occtrace-chart-*.tgz | grep '^l' || fail "the chart has links, which helm refuses"
fi
/usr/bin/python3 tests/integration/check_sbom.py "$work/one" || fail "the SBOM"

scripts/release --only "$kinds" --build "$work/second" "$work/two" >/dev/null
varies='occtrace-image-\|[.]cdx[.]json' # the archive of Debian of that moment, and the SBOM, which has the image's checksum
diff <(grep -v "$varies" "$work/one/SHA256SUMS") <(grep -v "$varies" "$work/two/SHA256SUMS") || fail "a second release has other files"
[ -e "$(echo "$work"/one/occtrace-image-*)" ] || cmp "$work/one"/*.cdx.json "$work/two"/*.cdx.json || fail "a second release has another SBOM"
echo "ok: $(wc -l <"$work/one/SHA256SUMS") files, twice the same"
