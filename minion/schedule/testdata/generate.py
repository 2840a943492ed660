"""Writes eval.json: what stock Salt's Schedule.eval decides, second by second, in scenes. Run with the Python of a stock Salt."""
import datetime
import json
import os
import random
import tempfile
import types

import croniter
import dateutil.parser
import salt.config
import salt.utils.schedule
from salt.utils.schedule import Schedule

random.randint = lambda a, b: b
T0 = datetime.datetime(2026, 11, 21, 10, 0, 0)  # a Saturday


def at(seconds, micro=0):
    return T0 + datetime.timedelta(seconds=seconds, microseconds=micro)


SEC = lambda *list_: [at(x) for x in list_]
every = lambda n, step=1: [at(x) for x in range(0, n, step)]

SCENES = {
    "seconds": ({"job": {"function": "test.ping", "seconds": 5}}, every(13)),
    "all units": ({"job": {"function": "test.ping", "seconds": 1, "minutes": 1, "hours": 1, "days": 1}}, SEC(0, 1, 90060, 90061, 90062)),
    "text seconds": ({"job": {"function": "test.ping", "seconds": "3"}}, every(8)),
    "micro": ({"job": {"function": "test.ping", "seconds": 2}}, [at(x, 700000) for x in range(5)]),
    "two jobs": ({"a": {"function": "a.b", "seconds": 2}, "b": {"func": "c.d", "seconds": 3}}, every(8)),
    "late": ({"job": {"function": "test.ping", "seconds": 5}}, SEC(0, 4, 60, 61, 66)),
    "run on start": ({"job": {"function": "test.ping", "seconds": 60, "run_on_start": True}}, SEC(0, 1, 60, 61)),
    "disabled job": ({"job": {"function": "test.ping", "seconds": 3, "enabled": False}}, every(8)),
    "disabled": ({"enabled": False, "job": {"function": "test.ping", "seconds": 3}}, every(8)),
    "dry run": ({"job": {"function": "test.ping", "seconds": 3, "dry_run": True}}, every(8)),
    "splay": ({"job": {"function": "test.ping", "seconds": 5, "splay": 3}}, every(20)),
    "splay range": ({"job": {"function": "test.ping", "seconds": 5, "splay": {"start": 1, "end": 2}}}, every(16)),
    "global splay": ({"splay": 2, "job": {"function": "test.ping", "seconds": 5}}, every(12)),
    "once": ({"job": {"function": "test.ping", "once": "2026-11-21T10:00:05"}}, every(9)),
    "once micro": ({"job": {"function": "test.ping", "once": "2026-11-21T10:00:05"}}, [at(x, 300000) for x in range(9)]),
    "once past": ({"job": {"function": "test.ping", "once": "2026-11-21T09:00:05"}}, every(3)),
    "once format": ({"job": {"function": "test.ping", "once": "21.11.2026 10:00", "once_fmt": "%d.%m.%Y %H:%M"}}, SEC(0, 1, 2)),
    "once wrong": ({"job": {"function": "test.ping", "once": "soon"}}, SEC(0, 1)),
    "once splay": ({"job": {"function": "test.ping", "once": "2026-11-21T10:00:03", "splay": 3}}, every(10)),
    "when": ({"job": {"function": "test.ping", "when": "11/21/2026 10:00:05am"}}, every(9)),
    "when micro": ({"job": {"function": "test.ping", "when": "11/21/2026 10:00:05am"}}, [at(x, 300000) for x in range(9)]),
    "when list": ({"job": {"function": "test.ping", "when": ["11/21/2026 10:00:03am", "11/21/2026 10:00:06am", "11/21/2026 9:00am"]}}, every(12)),
    "when past": ({"job": {"function": "test.ping", "when": "11/21/2026 9:00:05am"}}, every(3)),
    "when wrong": ({"job": {"function": "test.ping", "when": "nonsense"}}, every(2)),
    "when splay": ({"job": {"function": "test.ping", "when": "11/21/2026 10:00:03am", "splay": 3}}, every(10)),
    "when near": ({"job": {"function": "test.ping", "when": ["11/21/2026 10:00:03am", "11/21/2026 10:00:04am"]}}, every(9)),
    "whens pillar": ({"job": {"function": "test.ping", "when": ["tea", "dinner"]}}, every(7)),
    "cron": ({"job": {"function": "test.ping", "cron": "*/1 * * * *"}}, every(190, 10)),
    "cron second": ({"job": {"function": "test.ping", "cron": "* * * * * */5"}}, every(12)),
    "cron wrong": ({"job": {"function": "test.ping", "cron": "every day"}}, every(2)),
    "cron splay": ({"job": {"function": "test.ping", "cron": "*/1 * * * *", "splay": 7}}, every(200, 2)),
    "cron start": ({"job": {"function": "test.ping", "cron": "0 12 * * *", "run_on_start": True}}, SEC(0, 1, 7199, 7200, 7201)),
    "two kinds": ({"job": {"function": "test.ping", "cron": "* * * * *", "when": "10:00"}}, every(2)),
    "nothing": ({"job": {"function": "test.ping"}}, every(2)),
    "range": ({"job": {"function": "test.ping", "seconds": 2, "range": {"start": "10:00:04", "end": "10:00:08"}}}, every(14)),
    "range invert": ({"job": {"function": "test.ping", "seconds": 2, "range": {"invert": True, "start": "10:00:04", "end": "10:00:08"}}}, every(14)),
    "range wrong": ({"job": {"function": "test.ping", "seconds": 2, "range": {"start": "10:00:08", "end": "10:00:04"}}}, every(4)),
    "range no map": ({"job": {"function": "test.ping", "seconds": 2, "range": "10:00"}}, every(4)),
    "range bad date": ({"job": {"function": "test.ping", "seconds": 2, "range": {"start": "x", "end": "10:00:04"}}}, every(4)),
    "range cron": ({"job": {"function": "test.ping", "cron": "* * * * *", "range": {"start": "10:02", "end": "10:04"}}}, every(360, 15)),
    "skip range": ({"job": {"function": "test.ping", "seconds": 2, "skip_during_range": {"start": "10:00:03", "end": "10:00:07"}}}, every(14)),
    "skip range after": (
        {"job": {"function": "test.ping", "seconds": 10, "run_after_skip_range": True, "skip_during_range": {"start": "10:00:08", "end": "10:00:13"}}},
        every(30),
    ),
    "skip global": ({"skip_during_range": {"start": "10:00:03", "end": "10:00:07"}, "job": {"function": "test.ping", "seconds": 2}}, every(14)),
    "skip function": (
        {"skip_function": "test.skip", "skip_during_range": {"start": "10:00:03", "end": "10:00:07"}, "job": {"function": "test.ping", "seconds": 2}},
        every(14),
    ),
    "skip wrong": ({"job": {"function": "test.ping", "seconds": 2, "skip_during_range": {"start": "x", "end": "10:00:07"}}}, every(5)),
    "skip no map": ({"job": {"function": "test.ping", "seconds": 2, "skip_during_range": True}}, every(5)),
    "skip explicit": (
        {"job": {"function": "test.ping", "seconds": 3, "skip_explicit": [{"time": "2026-11-21T10:00:03", "time_fmt": "%Y-%m-%dT%H:%M:%S"}]}},
        every(9),
    ),
    "postponed": (
        {
            "job": {
                "function": "test.ping",
                "seconds": 10,
                "skip_explicit": [{"time": "2026-11-21T10:00:10", "time_fmt": "%Y-%m-%dT%H:%M:%S"}],
                "run_explicit": [{"time": "2026-11-21T10:00:14", "time_fmt": "%Y-%m-%dT%H:%M:%S"}],
            }
        },
        every(30),
    ),
    "until": ({"job": {"function": "test.ping", "seconds": 2, "until": "10:00:05"}}, every(12)),
    "after": ({"job": {"function": "test.ping", "seconds": 2, "after": "10:00:05"}}, every(12)),
    "jid_include": ({"job": {"function": "test.ping", "seconds": 2, "jid_include": False, "maxrunning": 3}}, every(4)),
    "interval and when": ({"job": {"function": "test.ping", "minutes": "1", "seconds": -55, "when": "10:00:03"}}, every(12)),
    "range function": ({"skip_function": "test.skip", "job": {"function": "test.ping", "seconds": 2, "range": {"start": "10:00:04", "end": "10:00:08"}}}, every(12)),
    "range splay": ({"job": {"function": "test.ping", "seconds": 2, "splay": 1, "range": {"start": "10:00:04", "end": "10:00:08"}}}, every(14)),
    "run explicit": (
        {"job": {"function": "test.ping", "seconds": 9, "run_explicit": [{"time": "2026-11-21T10:00:%02d" % x, "time_fmt": "%Y-%m-%dT%H:%M:%S"} for x in (3, 5, 14)]}},
        every(22),
    ),
    "skip explicit function": (
        {"skip_function": "test.skip", "job": {"function": "test.ping", "seconds": 3, "skip_explicit": [{"time": "2026-11-21T10:00:06", "time_fmt": "%Y-%m-%dT%H:%M:%S"}]}},
        every(11),
    ),
    "until once": ({"job": {"function": "test.ping", "once": "2026-11-21T10:00:05", "until": "10:00:03"}}, every(8)),
    "after when": ({"job": {"function": "test.ping", "when": ["10:00:03", "10:00:06"], "after": "10:00:04"}}, every(10)),
    "start and range": ({"job": {"function": "test.ping", "seconds": 3, "run_on_start": True, "range": {"start": "10:00:05", "end": "10:00:08"}}}, every(12)),
    "start disabled": ({"job": {"function": "test.ping", "seconds": 3, "run_on_start": True, "enabled": False}}, every(8)),
    "name": ({"job": {"name": "other", "function": "test.ping", "seconds": 3, "maxrunning": 0}}, every(8)),
    "whens grains": ({"job": {"function": "test.ping", "when": "tea"}}, every(6)),
    "whens list": ({"job": {"function": "test.ping", "when": "tea"}}, every(3)),
    "pillar": ({}, every(5)),
}
GRAINS = {"whens grains": {"whens": {"tea": "10:00:03"}}}
PILLAR = {
    "whens list": {"whens": ["tea"]},
    "whens pillar": {"whens": {"tea": "10:00:03", "dinner": "18:00"}},
    "pillar": {"schedule": {"job": {"function": "test.ping", "seconds": 2}}},
}
CRONS = """* * * * *
*/15 * * * *
0 0 * * *
30 4 1,15 * 5
0 22 * * 1-5
23 0-20/2 * * *
5 4 * * sun
0 0 1 jan *
0 0 29 2 *
0 12 * * mon-fri
0 0 * * 7
15 10 l * *
0 9 * * 5#2
0 9 * * l5
* * * * * 30
0 22-2 * * *
0 0 * * fri-mon
5/10 * * * *
0 0 31 2 *
60 * * * *
* * * *
a b c d e
@hourly
@daily
@weekly
@monthly
@yearly
0 0 1 1 * 0 2030
0 0 1-7 * mon
0 0 ? * mon
*/70 * * * *
1-0 * * * *
, * * * *
0 0 15 * 1-3/2""".split("\n")


def enc(value):
    if isinstance(value, datetime.datetime):
        return {"t": value.isoformat()}
    if isinstance(value, dict):
        return {k: enc(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [enc(v) for v in value]
    return value


def play(name, jobs, times, scratch):
    opts = salt.config.DEFAULT_MINION_OPTS.copy()
    opts.update({"cachedir": scratch, "schedule": json.loads(json.dumps(jobs)), "pillar": json.loads(json.dumps(PILLAR.get(name, {}))), "grains": GRAINS.get(name, {}), "loop_interval": 1, "__role": "minion"})
    opts["id"] = "m"
    s = Schedule(opts, {}, returners={}, new_instance=True, utils={})
    s.opts = opts
    s.option = lambda o: opts.get(o, {})
    started = []
    s._run_job = lambda func, data, jid=None: started.append([data["name"], func]) if not data.get("dry_run") else None
    s._check_max_running = lambda func, data, opts_, now: data
    steps = []
    last = None

    for current in times:
        started.clear()
        day = current.replace(hour=0, minute=0, second=0, microsecond=0)
        salt.utils.schedule.dateutil_parser = types.SimpleNamespace(parse=lambda text: dateutil.parser.parse(text, default=day))
        s.eval(now=current)
        state = {k: v for k, v in s._get_schedule().items() if isinstance(v, dict) and k != "skip_during_range"}
        out = enc(state)
        for job in out.values():
            if "run_explicit" in job:  # Salt repeats the entry at every look
                seen = []
                for x in job["run_explicit"]:
                    if x not in seen:
                        seen.append(x)
                job["run_explicit"] = seen
        step = {"now": current.isoformat()}
        if started:
            step["started"] = sorted(list(x) for x in started)
        if out != last:
            step["state"] = last = out  # left out while it stays the same
        steps.append(step)
    return steps


def main():
    with tempfile.TemporaryDirectory() as scratch:
        os.makedirs(os.path.join(scratch, "proc"), exist_ok=True)
        scenes = [
            {"name": n, "jobs": jobs, "pillar": PILLAR.get(n, {}), "grains": GRAINS.get(n, {}), "steps": play(n, jobs, times, scratch)} for n, (jobs, times) in SCENES.items()
        ]
    crons = []
    for text in CRONS:
        base = datetime.datetime(2026, 11, 21, 10, 7, 30)
        got = []
        try:
            it = croniter.croniter(text, base)
            for _ in range(6):
                got.append(it.get_next(datetime.datetime).isoformat())
        except (ValueError, KeyError):
            if not got:
                got = ["error"]
        crons.append({"cron": text, "next": got})
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "eval.json"), "w") as out:
        json.dump({"scenes": scenes, "crons": crons}, out, separators=(",", ":"), sort_keys=True)
        out.write("\n")


main()
