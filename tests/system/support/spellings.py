# SPDX-License-Identifier: MIT
"""Spellings of the paths of the status: a front server that denies one must deny all of them."""

STATUS = [
    "/.sweet/status", "//.sweet/status", "///.sweet///status", "/.sweet//status",
    "/./.sweet/status", "/.sweet/./status", "/x/../.sweet/status", "/x/..//.sweet/x/../status",
    "/%2esweet/status", "/.%73weet/status", "/.sweet/%73%74atus", "/%2E%73%77%65%65%74/status",
    "/%2e/.sweet/status", "/x/%2e%2e/.sweet/status", "/x/%2E./%2esweet/%2e/status",
    "/.sweet/status?", "/.sweet/status?a=%zz", "//.sweet/metrics", "/%2esweet/status.json",
    "/x/../.sweet/status.html", "/.sweet/ready", "http://test/%2esweet/status",
]
