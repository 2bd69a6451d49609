# Functions for the scripts in this folder, which run in the project's root: install the tools, start a server.

tools=$PWD/target/interop

# The exit code of a script that could not run because a package registry is away.
registry_away=75

# Installs packages of the system. Only root does: to others it prints the command.
apt_install() {
  if [ "$(id -u)" != 0 ]; then
    echo "programs are missing; install them by: sudo sh -c 'apt-get update && apt-get install -y $*'" >&2
    exit 1
  fi
  if ! apt-get update -q -o APT::Update::Error-Mode=any; then
    echo "the servers of the system's packages are away" >&2
    exit $registry_away
  fi
  apt-get install -qy "$@"
}

# Installs the packages of the programs that are missing, each as `program` or `program:package`.
install_packages() {
  local missing=() program
  for program; do
    command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
  done
  [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"
}

# Installs PostgreSQL, whose programs Debian has outside the search path.
install_postgres() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || apt_install postgresql
}

# Runs a command that installs from the registry $1. If it fails, and the registry does not answer to the command $2 either,
# the registry is away.
install_from() {
  local registry=$1 probe=$2
  shift 2
  "$@" && return
  if ! eval "$probe" >/dev/null 2>&1; then
    echo "$registry is away" >&2
    exit $registry_away
  fi
  echo "cannot install from $registry" >&2
  exit 1
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
    local pip="$tools/python/bin/pip"
    install_from PyPI "$pip download -q --no-deps --no-cache-dir --retries 1 --timeout 20 --dest $tools/probe pip" \
      "$pip" install -q --retries 2 --timeout 20 -r tests/interop/requirements.txt
    cp tests/interop/requirements.txt "$tools/"
  fi
  if ! cmp -s tests/interop/package.json "$tools/installed.json"; then
    rm -rf "$tools/node_modules"
    cp tests/interop/package.json "$tools/"
    install_from npm "npm view npm version --fetch-retries 1 --fetch-timeout 20000" npm install --prefix "$tools" \
      --loglevel error --no-package-lock --no-audit --no-fund --ignore-scripts --fetch-retries 2 --fetch-timeout 60000
    cp "$tools/package.json" "$tools/installed.json"
  fi
}

# Waits until the file $1 has something.
wait_for() {
  for _ in $(seq 100); do
    [ ! -s "$1" ] || return 0
    sleep 0.1
  done
}

# Builds the server and runs it with an empty store until the script ends; sets FORMS_URL and FORMS_API_KEY. The store is a data
# directory, or a database with FORMS_TEST_STORE=postgres.
start_server() {
  cargo build --locked --quiet
  scratch=$(mktemp -d)
  mkdir "$scratch/store"
  local store=(--data "$scratch/store")
  if [ "${FORMS_TEST_STORE:-embedded}" = postgres ]; then
    install_postgres
    # Stops when this script ends, and closes the other end of its input.
    exec 9> >(exec python3 tests/interop/postgres_rig.py >"$scratch/database")
    wait_for "$scratch/database"
    openssl rand -base64 32 >"$scratch/master-key"
    store=(--store "$(<"$scratch/database")" --master-key-file "$scratch/master-key" --operator-key-file "$scratch/store/operator-key")
  fi
  target/debug/forms serve "${store[@]}" --listen 127.0.0.1:0 "$@" >"$scratch/address" 2>"$scratch/log" 9>&- &
  server=$!
  trap 'kill "$server"; wait "$server" || true; rm -rf "$scratch"' EXIT
  wait_for "$scratch/address"
  FORMS_URL=$(<"$scratch/address")
  FORMS_API_KEY=$(<"$scratch/store/operator-key")
  export FORMS_URL FORMS_API_KEY
}
