"""Looks up every pinned package in the database of known vulnerabilities, and says truthfully what came of it.

    python .ci/audit.py path/to/pip-audit LOCK...

pip-audit ends with success also if it could look up nothing at all: it calls that a package that "could not be
audited". Here that is a failure, as is a pinned package of which it says nothing.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

OPTIONS = ["--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json"]


def pinned(lock: Path) -> dict[str, str]:
    """The packages that a lock file installs everywhere, with their versions; some are for certain systems only."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?!.* ; )", lock.read_text(), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def audit(program: str, lock: Path) -> list[str]:
    """What is wrong with what a lock file installs, or with the audit of it; an empty list is good news."""
    done = subprocess.run([program, *OPTIONS, "-r", str(lock)], capture_output=True, text=True, check=False)
    try:
        told = {package["name"].lower(): package for package in json.loads(done.stdout)["dependencies"]}
    except (ValueError, KeyError, TypeError):
        return [f"pip-audit failed: {done.stderr.strip()[-500:] or 'it said nothing'}"]
    wrong = [f"{name} is pinned, and was not looked up" for name in pinned(lock).keys() - told.keys()]
    for name, package in told.items():
        if "skip_reason" in package:
            wrong.append(f"{name} was not looked up: {package['skip_reason']}")
        for flaw in package.get("vulns", ()):
            mended = ", ".join(flaw.get("fix_versions", ())) or "no version yet"
            wrong.append(f"{name} {package['version']} has {flaw['id']}; mended in {mended}")
    if not wrong and done.returncode:
        wrong.append(f"pip-audit ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    looked_up = sum("skip_reason" not in package for package in told.values())
    print(f"{lock}: {looked_up} of {len(told)} packages looked up, {len(wrong)} problems", flush=True)
    return sorted(wrong)


def main() -> None:
    program, *locks = sys.argv[1:]
    wrong = {lock: audit(program, Path(lock)) for lock in locks}
    for lock, problems in wrong.items():
        for problem in problems:
            print(f"  {lock}: {problem}", file=sys.stderr)
    if any(wrong.values()) or not locks:
        sys.exit("the audit failed: see above. If packages were not looked up, is the database within reach?")
    print("no known vulnerability in any pinned package")


if __name__ == "__main__":
    main()
