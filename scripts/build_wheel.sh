#!/usr/bin/env bash
# From a tag to a wheel.
#
#     scripts/build_wheel.sh [TAG]        # without TAG: the last commit, whose tag is checked if it has one
#
# Checks that the tag names the version, builds the source archive and the wheel of what was committed into dist/,
# installs the wheel into a fresh environment, and runs it there.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
tag=${1:-$(git describe --tags --exact-match 2>/dev/null || true)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/source"
git archive "${tag:-HEAD}" | tar -x -C "$work/source"
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$work/source/bcl/__init__.py")
if [ -n "$tag" ] && [ "$tag" != "v$version" ]; then
    echo "the tag $tag does not name the version: bcl/__init__.py has $version, whose tag is v$version" >&2
    exit 1
fi

mkdir -p dist
out=$PWD/dist
"$python" -m venv "$work/environment"
bin=$work/environment/bin
"$bin/pip" install --quiet --disable-pip-version-check build
"$bin/python" -m build --outdir "$out" "$work/source"

"$bin/pip" install --quiet --disable-pip-version-check -c constraints.txt "$out/bcl-$version-py3-none-any.whl"
cd "$work"
[ "$("$bin/bcl" --version | tr -d '[:space:]' | sed 's/^bcl//')" = "$version" ]
"$bin/bcl" run split-digits er --seed 0 --tasks 2 --samples 20 --device cpu --out "$work/runs" > /dev/null
echo "dist/bcl-$version.tar.gz and dist/bcl-$version-py3-none-any.whl are ready"
