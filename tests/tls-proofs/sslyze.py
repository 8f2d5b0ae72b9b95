#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The proof sslyze: SWEET complies with the configuration "intermediate" that Mozilla recommends.

sslyze comes from PyPI, into the build folder; it trusts the tests' authority.  Exit status: 0 good,
1 not, 77 without PyPI.
"""

import json
import subprocess
import sys

import proof

REQUIREMENT = "sslyze==6.3.1"
SCANS = ("certificate_info", "tls_1_2_cipher_suites", "tls_1_3_cipher_suites", "heartbleed",
         "robot", "session_renegotiation", "elliptic_curves", "openssl_ccs_injection")


def main():
    python = proof.environment("sslyze", REQUIREMENT)
    with proof.place() as folder, proof.sweet(folder) as port:
        found = folder / "found.json"
        done = subprocess.run(
            [python, "-W", "ignore", "-m", "sslyze", "--mozilla_config=intermediate",
             "--certinfo_ca_file", folder / "authority.pem", "--json_out", found,
             f"localhost:{port}"], stdin=subprocess.DEVNULL)
        scans = json.loads(found.read_text())["server_scan_results"][0]["scan_result"]
    # Which exists only if the server was reached.
    wrong = [f"{name}: {scans[name]['status']}" for name in SCANS
             if scans[name]["status"] != "COMPLETED"]
    kinds = scans["certificate_info"]["result"]["certificate_deployments"]
    if len(kinds) != len(proof.KEYS):
        wrong.append(f"{len(kinds)} kinds of certificates")
    if done.returncode:
        wrong.append("it does not comply")
    print(f"sslyze: {'; '.join(wrong) or 'complies with both certificates'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
