#!/usr/bin/env bash
# From an empty folder to a first verified write, in each language, without a network: prints each
# command and the time. `make snapshot` makes the packages; Go takes the module from this clone.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
shopt -s nullglob

run() { # a command, which is printed
  printf '  $ %s\n' "${*//$root/…}"
  "$@"
}
first() { # the language, and the function that begins in an empty folder
  mkdir "$work/$1" && cd "$work/$1"
  local from=$EPOCHREALTIME
  "$2"
  awk -v name="$1" -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { printf "%s: %.1f s\n", name, b - a }'
  if [ -n "$server" ]; then
    kill "$server" && wait "$server" || true
    server=
  fi
}
listing() { # the first listing of a language in a page
  awk -v fence="\`\`\`$2" '$0 == fence && !n++ { on = 1; next } $0 == "```" { on = 0 } on' "$root/$1"
}
serve() { # the command that is installed; the first write waits until there is a server
  printf '  $ %s dev --no-browser &\n' "${1#"$PWD/"}"
  "$1" dev --no-browser --listen 127.0.0.1:8097 >server.log 2>&1 &
  server=$!
  export READBACK_URL=http://127.0.0.1:8097
}

typescript() {
  npm_config_cache=$PWD/cache run npm install --silent --offline "$root"/dist/packages/npm/readback-[0-9]*.tgz "$root"/dist/packages/npm/readback-linux-x64-*.tgz
  serve "$PWD/node_modules/.bin/readback"
  listing clients/typescript/README.md ts >first.mjs
  run node first.mjs
}
python() {
  run python3 -m venv venv
  run venv/bin/pip install --quiet --disable-pip-version-check --no-index --find-links "$root/dist/packages/pypi" 'readback[bin]'
  serve "$PWD/venv/bin/readback"
  listing clients/python/README.md python >first.py
  run venv/bin/python first.py
}
go_() {
  run go mod init first
  run go mod edit -require github.com/readback-go/readback@v0.1.0 -replace "github.com/readback-go/readback=$root"
  sed 's/^package once_test/package main/; s/^func Example()/func main()/' "$root/once/example_test.go" >main.go
  cp "$root/go.sum" . # else the checksums come from the network
  GOFLAGS=-mod=mod run go run .
}
first TypeScript typescript
first Python python
first Go go_
