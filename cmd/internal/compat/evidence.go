package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A source is a test, or a file with cases. Its text shows what it uses.
type source struct{ name, text string }

// evidence finds the tests that prove a row of the table. Its sources are sorted by name, so that the result is
// always the same.
type evidence struct {
	programs []source          // tests and scripts that run the programs
	tests    []source          // all tests
	found    map[string]string // earlier results, by question
}

// readEvidence reads the tests of the repository.
func readEvidence() (*evidence, error) {
	e := &evidence{found: map[string]string{}}
	for _, dir := range []string{"cmd", "internal", "interop", "master", "minion", "modules",
		"protocol", "states"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			script := strings.HasSuffix(path, ".txtar")
			if !script && !strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, tools) ||
				strings.HasPrefix(path, "internal/conf/") {
				return nil // tests of package conf contain the names of all options
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			list := []source{{filepath.ToSlash(path), string(b)}}
			if !script {
				list = testsOf(filepath.ToSlash(path), string(b))
			}
			e.tests = append(e.tests, list...)
			if in(path, "cmd", "interop", "minion/program") {
				e.programs = append(e.programs, list...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return e, nil
}

func in(path string, dirs ...string) bool {
	return slices.ContainsFunc(dirs,
		func(d string) bool { return strings.HasPrefix(path, d+string(filepath.Separator)) })
}

// testHead matches the first line of a declaration in a test file.
var testHead = regexp.MustCompile(`(?m)^(?:func(?: \([^)]*\))? |var |const )`)

var testName = regexp.MustCompile(`^func (Test\w+)\(`)

// testsOf splits a test file into tests. Other declarations belong to the nearest test above them or, if there is
// none, to the first test.
func testsOf(path, text string) []source {
	var out []source
	head, name := "", ""
	at := testHead.FindAllStringIndex(text, -1)
	for i, span := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		part := text[span[0]:end]
		switch m := testName.FindStringSubmatch(part); {
		case m != nil:
			name = filepath.ToSlash(filepath.Dir(path)) + ": " + m[1]
			out = append(out, source{name, head + part})
			head = ""
		case name == "":
			head += part
		default:
			out[len(out)-1].text += part
		}
	}
	return out
}

// program matches the call of each program in a test: its name, or a helper of the test harness.
var program = map[string]*regexp.Regexp{
	"salt-minion": regexp.MustCompile(`salt-minion|startMinion|ourMinion|brine-minion`),
	"salt-call":   regexp.MustCompile(`salt-call|[oO]urCall|saltCall|callRaw`),
	"salt-master": regexp.MustCompile(`salt-master|startMaster|ourMaster|brine-master`),
	"salt": regexp.MustCompile("\"salt\"|\\bsalt '|\\bsalt [-*\"\\\\]|[(.]salt\\(|`salt " +
		"|exec salt |[oO]urSalt"),
	"salt-key": regexp.MustCompile(`salt-key|saltKey`),
	"salt-run": regexp.MustCompile(`salt-run|saltRun`),
}

// flagEvidence returns the first test that passes an option to a program on the command line, or "" if there is no
// such test.
func (e *evidence) flagEvidence(prog, flag string) string {
	use := regexp.MustCompile("(?:^|[\"` ',(])" + regexp.QuoteMeta(flag) + "(?:[\"` ',=)\n]|$)")
	return e.firstSource("flag "+prog+" "+flag, e.programs, func(s source) bool {
		// the fastest condition first
		return strings.Contains(s.text, flag) && use.MatchString(s.text) &&
			program[prog].MatchString(s.text)
	})
}

// optionEvidence returns the first test that sets an option, or passes it to code that reads it.
func (e *evidence) optionEvidence(name string) string {
	q := regexp.QuoteMeta(name)
	use := regexp.MustCompile("(?m)(?:^|[\"`{]|\\\\n|, )" + q + ": ?|\"" + q + "\"")
	return e.firstSource("option "+name, e.tests,
		func(s source) bool { return strings.Contains(s.text, name) && use.MatchString(s.text) })
}

// attack matches the names of tests that send requests to have them refused, or only use their names.
var attack = regexp.MustCompile(`Hostile|Chaos|RequestTTL|FirstTime|: Test(CVE_|T\d)`)

// requestEvidence returns the first test that sends a request and is not an attack.
func (e *evidence) requestEvidence(name string) string {
	use := regexp.MustCompile(`"cmd": ?"` + regexp.QuoteMeta(name) + `"|"` +
		regexp.QuoteMeta(name) + `"`)
	return e.firstSource("request "+name, e.tests, func(s source) bool {
		return (strings.HasPrefix(s.name, "master") || strings.HasPrefix(s.name, "interop") ||
			strings.HasPrefix(s.name, "protocol")) && use.MatchString(s.text) &&
			!attack.MatchString(s.name)
	})
}

func (e *evidence) firstSource(question string, list []source, shows func(source) bool) string {
	if name, ok := e.found[question]; ok {
		return name
	}
	name := ""
	if i := slices.IndexFunc(list, shows); i >= 0 {
		name = list[i].name
	}
	e.found[question] = name
	return name
}

// proof returns the status of a row followed by the test that proves it, or "not compared" if there is no test.
func proof(status, test string) string {
	if test == "" {
		return "not compared"
	}
	return status + ": `" + test + "`"
}
