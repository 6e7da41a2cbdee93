#!/usr/bin/env bash
# wireit 0.14.13 runs npm scripts that depend on each other.
# One would guess: a script that runs as a dependency sees in `npm_lifecycle_event` its own name, as under `npm run`, where programs
# read it to learn which script they are.
# Seen: every script of the graph sees the name of the script that was started. The same command writes another name when it is run
# alone, and wireit's cache does not notice: the second run is skipped and the name of the first stays.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >package.json <<'JSON'
{
  "scripts": { "all": "wireit", "part": "wireit" },
  "wireit": {
    "all": { "dependencies": ["part"] },
    "part": { "command": "echo \"$npm_lifecycle_event\" > name.txt", "files": [], "output": ["name.txt"] }
  }
}
JSON
npm install --silent --no-audit --no-fund --save-dev wireit@0.14.13
export CI=false WIREIT_CACHE=local
npm run --silent part >/dev/null
alone=$(cat name.txt)
rm -rf .wireit name.txt
npm run --silent all >/dev/null
within=$(cat name.txt)
npm run --silent part >/dev/null
again=$(cat name.txt)
echo "alone: $alone; within all: $within; alone after that: $again"
[ "$alone $within $again" = "part all all" ] || { echo "changed"; exit 1; }
