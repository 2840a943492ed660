"""
Runs beacons of stock Salt for the differential test: reads scenes as JSON from standard input and writes what each step gave.
"""

import importlib
import json
import os
import sys
import time


class Answers(dict):
    """__salt__ of functions that give one answer after the other."""

    def __init__(self, answers):
        super().__init__()
        for fun, values in answers.items():
            self[fun] = self.next_of(list(values))

    @staticmethod
    def next_of(values):
        return lambda *args, **kwargs: values.pop(0) if len(values) > 1 else values[0]


def plain(value):
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def main():
    out = []
    for scene in json.load(sys.stdin):
        module = importlib.import_module("salt.beacons." + scene["module"])
        module = importlib.reload(module)
        module.__context__ = {}
        module.__salt__ = Answers(scene.get("salt") or {})
        module.__opts__ = {"id": "m"}
        module.__grains__ = {}
        for name, value in (scene.get("set") or {}).items():
            setattr(module, name, value)
        results = []
        for step in scene["steps"]:
            for path, content in (step.get("append") or {}).items():
                with open(path, "ab") as fp:
                    fp.write(bytes.fromhex(content))
            for cmd in step.get("run") or []:
                os.system(cmd)
            config = step["config"]
            result = {"valid": list(module.validate(json.loads(json.dumps(config))))}
            if result["valid"][0]:
                try:
                    config.append({"_beacon_name": scene["module"]})
                    result["found"] = plain(module.beacon(config))
                except Exception as exc:  # pylint: disable=broad-except
                    result["error"] = str(exc)
            results.append(result)
        if hasattr(module, "close"):
            module.close([{"_beacon_name": scene["module"]}])
        out.append(results)
    json.dump(out, sys.stdout, default=str)


main()
