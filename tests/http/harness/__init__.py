# SPDX-License-Identifier: Apache-2.0
"""What the tests talk through: a real httpd, a simulated provider, a
scripted upstream and a client that remembers when each byte came."""
