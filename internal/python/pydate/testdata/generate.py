"""Writes dates.txt: what python-dateutil and datetime.strptime make of texts. Run with the Python of a stock Salt."""
import datetime
import os
import warnings

import dateutil.parser

warnings.simplefilter("error")
DEFAULT = datetime.datetime(2026, 11, 21)
TEXTS = """2026-12-24
2026-12-24 10:30
2026-12-24T10:30:15
2026-12-24T10:30:15.250
20261224
20261224T1030
202612241030
20261224103015
11:00:00pm
10:30
5:00pm
5pm
5 pm
5:00 PM
12am
12pm
12:30 am
13pm
Monday 5:00pm
monday
Sat 11:00
Saturday
sunday at 10pm
Tue Nov 24 08:00:00 2026
Dec 25, 2026 10:00 AM
25 December 2026
25 Dec
December 25
Dec 25th at 10am
3rd of May 2027
Jan of 27
Sept 5 2026
01/02/2026
1/2/26
13/2/26
31/12/2026 23:59
12/31/2026 5pm
24.12.2026
24.12.2026 08:15
24-Dec-2026
2026/12/24
Dec-24-2026
1999
99
10h36m28.5s
10h
10 hours 5 minutes
5 minutes
November 21, 2017 9:01pm
Dec 31 2026 12:00:01.123456
2/29/2026
2/29/2028
2026-13-01
25:00
10:61
10:30:61
next week
tomorrow
now
today

5:00 foo
Mon Mon
Jan Feb
2026-11-21 10:30:15,123
10:30 21 November
1/1/2026 1:00
30
31
32
2026-11
11-2026
Feb
1/2
13/2
05:00:00
0500
050000
6:00 am Friday
a
1 2 3 4
2026-11-21 5:00 p
""".split("\n")
PAIRS = [
    ("2026-12-24T10:30:15", "%Y-%m-%dT%H:%M:%S"),
    ("2026-12-24T10:30", "%Y-%m-%dT%H:%M:%S"),
    ("2026-12-24T10:30:15x", "%Y-%m-%dT%H:%M:%S"),
    ("24.12.26 8:05 pm", "%d.%m.%y %I:%M %p"),
    ("Dec 24 2026", "%b %d %Y"),
    ("December 24 2026", "%B %d %Y"),
    ("Thu 24 Dec 10:00:00", "%a %d %b %X"),
    ("2026-02-30", "%Y-%m-%d"),
    ("2026-060", "%Y-%j"),
    ("10:30:15.25", "%H:%M:%S.%f"),
    ("10%", "%H%%"),
    ("12 am", "%I %p"),
    ("2026", "%Q"),
    ("68 69", "%y 69"),
    ("2026 1 1", "%Y %m %d"),
    ("2026-1-1", "%Y-%m-%d"),
    ("", "%Y"),
    ("26", "%Y"),
]

with open(os.path.join(os.path.dirname(__file__), "dates.txt"), "w") as out:
    for text in TEXTS:
        try:
            got = dateutil.parser.parse(text, default=DEFAULT)
            got = got.isoformat() if got.tzinfo is None else "zone"
        except (ValueError, OverflowError, dateutil.parser.UnknownTimezoneWarning):
            got = "error"
        out.write(f"parse\t{text}\t\t{got}\n")
    for text, form in PAIRS:
        try:
            got = datetime.datetime.strptime(text, form).isoformat()
        except ValueError:
            got = "error"
        out.write(f"strptime\t{text}\t{form}\t{got}\n")
