#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The proof testssl: Debian's testssl.sh has no finding above LOW, except those that EXCUSED lists.

Version 3.0, which Debian 12 has, gives no grade; a version that gives one must say A or better.
Exit status: 0 good, 1 not, 77 without the program.
"""

import json
import subprocess
import sys

import proof

GOOD = ("OK", "INFO", "LOW")
EXCUSED = {
    "engine_problem": "its own openssl has no engine for GOST",
    "security_headers": "fields such as Content-Security-Policy are the site's, not the server's",
    "sessionresumption_ticket": "its client may leave before the tickets of TLS 1.3 arrive",
}
GRADES = ("A", "A+")
# Each must have found something: otherwise little was looked at.
LOOKED_AT = ("TLS1_2", "TLS1_3", "heartbleed", "ROBOT", "secure_client_renego", "HSTS_time",
             "cert_chain_of_trust <cert#1>", "cert_chain_of_trust <cert#2>", "LOGJAM")


def main():
    program = proof.program("testssl")
    with proof.place() as folder, proof.sweet(folder) as port:
        found = folder / "findings.json"
        done = subprocess.run(
            [program, "--quiet", "--color", "0", "--warnings", "batch", "--ip", "127.0.0.1",
             "--nodns", "none", "--add-ca", folder / "authority.pem", "--jsonfile", found,
             f"localhost:{port}"], stdin=subprocess.DEVNULL)
        findings = json.loads(found.read_text())
    by_id = {finding["id"]: finding for finding in findings}
    wrong = [f"{name} is missing" for name in LOOKED_AT if name not in by_id]
    for finding in findings:
        name = finding["id"].partition(" ")[0]
        line = f"{finding['id']}: {finding['severity']}: {finding['finding']}"
        if finding["severity"] in GOOD:
            continue
        if name in EXCUSED:
            print(f"testssl: excused: {line}: {EXCUSED[name]}")
        else:
            wrong.append(line)
    grade = by_id.get("overall_grade", {}).get("finding")
    if grade and grade not in GRADES:
        wrong.append(f"grade {grade}")
    for line in wrong:
        print(f"testssl: {line}")
    print(f"testssl: exit status {done.returncode}, {len(findings)} findings, "
          f"grade {grade or 'not given by this version'}, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
