"""
Prepares an InfluxDB for a case of states, or asks it: influx.py PORT reset|ask QUERY ... reset drops all databases and users first.
"""

import json
import sys
import urllib.parse
import urllib.request


def ask(q):
    body = urllib.parse.urlencode({"q": q}).encode()
    return json.load(urllib.request.urlopen("http://127.0.0.1:%s/query" % sys.argv[1], body))["results"][0]


if sys.argv[2] == "reset":
    for what in "DATABASE", "USER":
        for row in ask("SHOW %sS" % what)["series"][0].get("values", []):
            ask('DROP %s "%s"' % (what, row[0]))
for q in sys.argv[3:]:
    r = ask(q)
    for s in r.get("series", []):
        s.get("values", []).sort()  # grants come in any order
    print(json.dumps(r))
