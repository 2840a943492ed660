package optparse_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/google/go-cmp/cmp"
)

func parser() *optparse.Parser {
	return &optparse.Parser{
		Prog: "prog", Usage: "%prog [options]", Description: "A program.", Epilog: "See %prog.",
		Options: []optparse.Option{
			{Names: []string{"-v", "--verbose"}, Kind: optparse.True, Help: "Say more."},
			{Names: []string{"-t", "--timeout"}, Kind: optparse.Int, Default: int64(5), Help: "Wait. Default: %default."},
			{Names: []string{"--wait"}, Kind: optparse.Float},
			{Names: []string{"--hide"}, Dest: "show", Kind: optparse.False},
			{Names: []string{"-l"}, Dest: "level", Kind: optparse.Choice, Choices: []string{"info", "debug"}},
			{Names: []string{"--no-x"}, Kind: optparse.True},
		},
		Groups: []optparse.Group{{Title: "Group", Description: "More.", Options: []optparse.Option{
			{Names: []string{"-o", "--out", "--output"}, Dest: "output"},
			{Names: []string{"--out-file"}, Hidden: true},
		}}},
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want map[string]any
		rest []string
	}{
		"nothing":                {nil, map[string]any{"verbose": false, "timeout": int64(5), "show": true, "output": nil}, nil},
		"mixed with arguments":   {[]string{"a", "-v", "b"}, map[string]any{"verbose": true}, []string{"a", "b"}},
		"equals sign":            {[]string{"--out=x=y"}, map[string]any{"output": "x=y"}, nil},
		"empty value":            {[]string{"--out="}, map[string]any{"output": ""}, nil},
		"other name":             {[]string{"--output", "z"}, map[string]any{"output": "z"}, nil},
		"exact before longer":    {[]string{"--out", "z"}, map[string]any{"output": "z", "out_file": nil}, nil},
		"shortened":              {[]string{"--tim", "3"}, map[string]any{"timeout": int64(3)}, nil},
		"glued":                  {[]string{"-t3", "-vofile"}, map[string]any{"timeout": int64(3), "verbose": true, "output": "file"}, nil},
		"value like an option":   {[]string{"-o", "-v"}, map[string]any{"output": "-v", "verbose": false}, nil},
		"end of options":         {[]string{"--", "-v", "--", "x"}, map[string]any{"verbose": false}, []string{"-v", "--", "x"}},
		"dash alone":             {[]string{"-", "-v"}, map[string]any{"verbose": true}, []string{"-"}},
		"negative number":        {[]string{"-t", "-1"}, map[string]any{"timeout": int64(-1)}, nil},
		"hexadecimal and octal":  {[]string{"-t", "0x10", "--wait", "1e-2"}, map[string]any{"timeout": int64(16), "wait": 0.01}, nil},
		"octal":                  {[]string{"-t", "010"}, map[string]any{"timeout": int64(8)}, nil},
		"false flag":             {[]string{"--hide"}, map[string]any{"show": false}, nil},
		"last one counts":        {[]string{"-t1", "-t2"}, map[string]any{"timeout": int64(2)}, nil},
		"dashes to underscores":  {[]string{"--no-x"}, map[string]any{"no_x": true}, nil},
		"choice":                 {[]string{"-l", "debug"}, map[string]any{"level": "debug"}, nil},
		"argument with a letter": {[]string{"é", "-v"}, map[string]any{"verbose": true}, []string{"é"}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := parser().Parse(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			for dest, want := range tc.want {
				if diff := cmp.Diff(want, v.Get(dest)); diff != "" {
					t.Errorf("%s: %s", dest, diff)
				}
			}
			if diff := cmp.Diff(tc.rest, v.Args); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--nosuch":                "no such option: --nosuch",
		"-z":                      "no such option: -z",
		"-vz":                     "no such option: -z",
		"--t=":                    "option --timeout: invalid integer value: ''",
		"--out":                   "--out option requires 1 argument",
		"-o":                      "-o option requires 1 argument",
		"--timeout":               "--timeout option requires 1 argument",
		"--verbose=1":             "--verbose option does not take a value",
		"-t x":                    "option -t: invalid integer value: 'x'",
		"-t 1.5":                  "option -t: invalid integer value: '1.5'",
		"--wait x'y":              `option --wait: invalid floating-point value: "x'y"`,
		"-l x":                    "option -l: invalid choice: 'x' (choose from 'info', 'debug')",
		"--o x":                   "ambiguous option: --o (--out, --out-file, --output?)",
		"--":                      "",
		"-é":                      "no such option: -é",
		"--verb --hi":             "",
		"-t 99999999999999999999": "option -t: invalid integer value: '99999999999999999999'",
	} {
		_, err := parser().Parse(strings.Fields(args))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", args, err)
			}
			continue
		}
		var e *optparse.Error
		if !errors.As(err, &e) || e.Msg != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func TestValues(t *testing.T) {
	v, err := parser().Parse([]string{"-t", "7"})
	if err != nil {
		t.Fatal(err)
	}
	if !v.IsSet("timeout") || v.IsSet("verbose") || v.Int("timeout") != 7 || v.String("timeout") != "" {
		t.Error("values are not what was given")
	}
	v.Fill("verbose", true)
	if v.IsSet("verbose") || !v.Bool("verbose") {
		t.Error("a filled value counts as given")
	}
	v.Put("wait", 2.5)
	if !v.IsSet("wait") || v.Float("wait") != 2.5 {
		t.Error("a put value does not count")
	}
}

func TestHelp(t *testing.T) {
	const want = `Usage: prog [options]

A program.

Options:
  -v, --verbose         Say more.
  -t TIMEOUT, --timeout=TIMEOUT
                        Wait. Default: 5.
  --wait=WAIT           
  --hide                
  -l LEVEL              
  --no-x                

  Group:
    More.

    -o OUTPUT, --out=OUTPUT, --output=OUTPUT

See prog.
`
	if diff := cmp.Diff(trimLines(want), trimLines(parser().Help())); diff != "" {
		t.Error(diff)
	}
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"-v", "--tim 3 x", "-t3 -- -v", "--out=é", "-vofile"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		v, err := parser().Parse(args)
		if err == nil && len(v.Args) > len(args) {
			t.Errorf("%q: %d arguments out of %d words", line, len(v.Args), len(args))
		}
	})
}
