#!/bin/bash
# Python for eventlake's package, beside the one that Amazon Linux uses itself.
set -euo pipefail
sudo dnf install -y -q python3.11
