# SPDX-License-Identifier: MIT
# What is longer than a manual page, with the files that go with it.
if SWEET
dist_doc_DATA += doc/haproxy.cfg doc/haproxy.md
endif
