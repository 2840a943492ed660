package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// help is the parsed output of a program's --help.
type help struct {
	usage, description string
	groups             []group
	epilog             string
}

type group struct {
	title, description string
	options            []option
}

type option struct {
	names   []string
	metavar string // empty for a flag
	help    string
}

// wide sets a width at which no text of the help is wrapped.
const wide = "COLUMNS=20000"

// programHelp runs a program with --help and parses the output.
func programHelp(dir string, p program) (*help, error) {
	cmd := exec.Command(filepath.Join(dir, p.args[0]), append(p.args[1:], "--help")...)
	cmd.Env = append(os.Environ(), wide)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot read the help of %s: %w", p.name, err)
	}
	h, err := parseHelp(string(out))
	if err != nil {
		return nil, fmt.Errorf("cannot read the help of %s: %w", p.name, err)
	}
	return h, nil
}

// parseHelp parses the output of internal/python/optparse.
func parseHelp(text string) (*help, error) {
	h := &help{}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	usage, ok := strings.CutPrefix(lines[0], "Usage: ")
	if !ok {
		return nil, fmt.Errorf("line 1: %q is no usage", lines[0])
	}
	h.usage = usage
	inOptions := false
	for n, line := range lines[1:] {
		body := strings.TrimLeft(line, " ")
		indent := len(line) - len(body)
		switch {
		case body == "":
		case line == "Options:":
			inOptions = true
			h.groups = append(h.groups, group{title: "Options"})
		case !inOptions:
			h.description = strings.TrimSpace(h.description + " " + body)
		case indent == 0:
			h.epilog = strings.TrimSpace(h.epilog + " " + body)
		case indent == 2 && !strings.HasPrefix(body, "-"):
			h.groups = append(h.groups, group{title: strings.TrimSuffix(body, ":")})
		case indent <= 4 && strings.HasPrefix(body, "-"):
			o, err := parseOption(body)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n+2, err)
			}
			g := &h.groups[len(h.groups)-1]
			g.options = append(g.options, o)
		default:
			g := &h.groups[len(h.groups)-1]
			if len(g.options) == 0 {
				g.description = strings.TrimSpace(g.description + " " + body)
			} else {
				o := &g.options[len(g.options)-1]
				o.help = strings.TrimSpace(o.help + " " + body)
			}
		}
	}
	if !inOptions {
		return nil, fmt.Errorf("there are no options")
	}
	return h, nil
}

// parseOption parses "-c DIR, --config-dir=DIR What it is for".
func parseOption(s string) (option, error) {
	var o option
	names, text, _ := strings.Cut(s, "  ")
	o.help = strings.TrimSpace(text)
	for part := range strings.SplitSeq(names, ", ") {
		name, metavar, found := strings.Cut(part, "=")
		if !strings.HasPrefix(part, "--") {
			name, metavar, found = strings.Cut(part, " ")
		}
		if !strings.HasPrefix(name, "-") {
			return o, fmt.Errorf("%q is no option", s)
		}
		o.names = append(o.names, name)
		if found {
			o.metavar = metavar
		}
	}
	return o, nil
}

func (h *help) eachOption(f func(option)) {
	for _, g := range h.groups {
		for _, o := range g.options {
			f(o)
		}
	}
}

var (
	oneOf  = regexp.MustCompile(`One of ((?:'[^']+'(?:, | or |, or )?)+)`)
	quoted = regexp.MustCompile(`'([^']+)'`)
)

// choiceList returns the values that an option's help lists.
func (o option) choiceList() []string {
	m := oneOf.FindStringSubmatch(o.help)
	if m == nil {
		return nil
	}
	var list []string
	for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
		list = append(list, q[1])
	}
	return list
}

// kind returns the kind of an option's value: "dir", "file", or "" for any text.
func (o option) kind() string {
	name := strings.TrimLeft(o.names[len(o.names)-1], "-")
	switch {
	case o.metavar == "":
		return ""
	case strings.HasSuffix(name, "dir"), strings.HasSuffix(name, "dirs"),
		strings.HasSuffix(name, "-root"), strings.HasSuffix(name, "path"):
		return "dir"
	case strings.HasSuffix(name, "file"):
		return "file"
	}
	return ""
}
