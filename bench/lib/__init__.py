# SPDX-License-Identifier: MIT
"""The parts of bench; see ../README.md for which does what."""
