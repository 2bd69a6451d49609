# Functions for the scripts in this folder, which run in the project's root: install the tools, start a server.

tools=$PWD/target/interop

# Installs the pinned tools if their lists have changed.
install_tools() {
  if ! { command -v curl && command -v node && command -v npm; } >/dev/null || ! python3 -c 'import ensurepip' 2>/dev/null; then
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" apt-get install -qy curl nodejs npm python3-venv
  fi
  mkdir -p "$tools"
  if ! cmp -s tests/interop/requirements.txt "$tools/requirements.txt"; then
    python3 -m venv --clear "$tools/python"
    "$tools/python/bin/pip" install -q -r tests/interop/requirements.txt
    cp tests/interop/requirements.txt "$tools/"
  fi
  if ! cmp -s tests/interop/package.json "$tools/installed.json"; then
    rm -rf "$tools/node_modules"
    cp tests/interop/package.json "$tools/"
    (cd "$tools" && npm install --loglevel error --no-package-lock --no-audit --no-fund --ignore-scripts)
    cp "$tools/package.json" "$tools/installed.json"
  fi
}

# Builds the server and runs it with an empty data directory until the script ends; sets FORMS_URL and FORMS_API_KEY.
start_server() {
  cargo build --locked --quiet
  scratch=$(mktemp -d)
  target/debug/forms serve --data "$scratch/store" --listen 127.0.0.1:0 "$@" >"$scratch/address" 2>"$scratch/log" &
  server=$!
  trap 'kill "$server"; wait "$server" || true; rm -rf "$scratch"' EXIT
  for _ in $(seq 100); do
    [ ! -s "$scratch/address" ] || break
    sleep 0.1
  done
  FORMS_URL=$(<"$scratch/address")
  FORMS_API_KEY=$(<"$scratch/store/operator-key")
  export FORMS_URL FORMS_API_KEY
}
