#!/bin/sh
# Writes the golden files anew; with --check, compares them with what is committed.
set -e
cd "$(dirname "$0")/.."
python3 -m venv target/reference
target/reference/bin/pip install --quiet --requirement reference/requirements.txt
exec target/reference/bin/python reference/golden.py "$@"
