# Functions for the scripts in this folder, which run in the project's root: install the tools, start a server.

tools=$PWD/target/interop

apt_install() {
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" apt-get install -qy "$@"
}

# Installs the packages of the programs that are missing, each as `program` or `program:package`.
install_packages() {
  local missing=() program
  for program; do
    command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
  done
  [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"
}

# Prints a TCP port that is free on 127.0.0.1.
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Installs the pinned tools if their lists have changed.
install_tools() {
  install_packages curl jq node:nodejs npm
  python3 -c 'import ensurepip' 2>/dev/null || apt_install python3-venv
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
