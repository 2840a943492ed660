"""The script around a configuration, run by the shells of this host."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from brine_openstack.heat import script

MARK = "heat-outputs-0123456789abcdef"


class Wrapped(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def run_with(self, shell, config, inputs=None, outputs=()):
        path = os.path.join(self.directory, "script")
        with open(path, "w") as f:
            f.write(script.wrap(config, inputs or {}, list(outputs), MARK))
        env = dict(os.environ, TMPDIR=self.directory)
        p = subprocess.run(shell + [path], capture_output=True, text=True, env=env, timeout=60, umask=0o022)
        # As Salt does: white space at the end is cut off.
        out = script.unwrap(p.stdout.rstrip(), p.stderr.rstrip(), list(outputs), MARK)
        return p.returncode, *out

    def shells(self):
        for shell in (["sh"], ["bash"], ["dash"], ["busybox", "sh"], ["mksh"]):
            if shutil.which(shell[0]):
                yield shell

    def test_streams_outputs_and_code(self):
        config = ("#!/bin/sh\necho \"hello $who\"\necho \"a warning\" >&2\nprintf 'a b\\n\\n' >$heat_outputs_path.answer\n"
                  "umask\nexit 3")
        for shell in self.shells():
            with self.subTest(shell):
                code, out, err, found, complaints = self.run_with(shell, config, {"who": "it's\n@MARK@ $x `y`"}, ["answer", "missing"])
                self.assertEqual((code, out, err), (3, "hello it's\n@MARK@ $x `y`\n0022\n", "a warning\n"))
                self.assertEqual((found, complaints), ({"answer": "a b\n\n"}, []))
                self.assertEqual(os.listdir(self.directory), ["script"])

    def test_any_interpreter(self):
        config = "#!%s\nimport os, sys\nprint(os.environ['n'], os.environ['m'], repr(os.environ['none']), repr(os.environ['odd-name']))\n" % sys.executable
        for shell in self.shells():
            with self.subTest(shell):
                inputs = {"n": 1, "m": {"a": [True]}, "none": None, "odd-name": "x", "UID": "u", "heat_dir": "/nowhere", "IFS": "x"}
                self.assertEqual(self.run_with(shell, config, inputs)[:2], (0, "1 {\"a\": [true]} '' 'x'\n"))

    def test_no_interpreter_is_the_shell(self):
        for shell in self.shells():
            with self.subTest(shell):
                self.assertEqual(self.run_with(shell, "echo hi; exit 4")[:2], (4, "hi\n"))

    def test_exact_bytes(self):
        for shell in self.shells():
            with self.subTest(shell):
                config = "#!/bin/sh\nwc -c <\"$0\"\nprintf 'é\\\\n\\n \\n'"
                self.assertEqual(self.run_with(shell, config)[1].split("\n", 1), [str(len(config.encode())), "é\\n\n \n"])

    def test_a_program_that_is_not_there(self):
        code, _, err, _, _ = self.run_with(["sh"], "#!/no/such/interpreter\n")
        self.assertIn(code, (126, 127))
        self.assertIn("not found", err)

    def test_large_output(self):
        config = "#!/bin/sh\ndd if=/dev/zero bs=1024 count=300 2>/dev/null | tr '\\0' x >$heat_outputs_path.big"
        _, _, _, found, complaints = self.run_with(["sh"], config, {}, ["big"])
        self.assertEqual(found["big"], "x" * script.MAX_OUTPUT)
        self.assertEqual(complaints, ["the output big has 307200 bytes, only the first 262144 are kept"])

    def test_killed(self):
        self.assertEqual(script.unwrap("some", "thing", ["a"], MARK), ("some", "thing", {}, []))

    def test_others_cannot_read(self):
        config = "#!%s\nimport os, stat, sys\nd = os.path.dirname(os.environ['heat_outputs_path'])\n" \
                 "print(oct(stat.S_IMODE(os.stat(d).st_mode)), oct(stat.S_IMODE(os.stat(sys.argv[0]).st_mode)))\n" % sys.executable
        self.assertEqual(self.run_with(["sh"], config)[1], "0o700 0o700\n")
        self.assertEqual(stat.S_IMODE(os.stat(self.directory).st_mode), 0o700)

    def test_what_no_environment_can_have(self):
        for config, inputs, outputs, want in (
                ("a\0b", {}, [], "NUL"), ("x", {"a=b": "1"}, [], "a=b"), ("x", {"": "1"}, [], "''"), ("x", {"a": "\0"}, [], "'a'"),
                ("x", {}, ["../x"], "'../x'"), ("x", {}, ["a b"], "'a b'")):
            with self.subTest(want), self.assertRaisesRegex(script.ScriptError, want.replace(".", "\\.")):
                script.wrap(config, inputs, outputs, MARK)


if __name__ == "__main__":
    unittest.main()
