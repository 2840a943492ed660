"""Write swift's three rings with one device each.

Usage: swift_rings.py DIRECTORY ACCOUNT-PORT CONTAINER-PORT OBJECT-PORT
"""

import os
import sys

from swift.common.ring import RingBuilder

for name, port in zip(("account", "container", "object"), sys.argv[2:5]):
    ring = RingBuilder(part_power=4, replicas=1, min_part_hours=0)
    ring.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": int(port), "device": "d1", "weight": 1.0})
    ring.rebalance()
    ring.get_ring().save(os.path.join(sys.argv[1], name + ".ring.gz"))
