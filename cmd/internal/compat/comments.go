package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// remark is a line of the comment on compatibility that stands in each module's source:
//
//	// cmd.tty differs: only names of terminals are taken.
//	// saltutil.runner, saltutil.wheel are absent: they are Python code of a master on the same host.
//	// cmd.* differ: a command reads nothing if no stdin is given.
type remark struct {
	names []string
	text  string
}

// remarks collects them.
func remarks() ([]remark, error) {
	files, err := filepath.Glob("modules/*/*.go")
	if err != nil {
		return nil, err
	}
	line := regexp.MustCompile(`(?m)^// ((?:[a-z_]+\.[A-Za-z_0-9*]+(?:, | and )?)+)(?: on [A-Z][a-z]+)? (?:differs?|absent|is absent|are absent): (.+)$`)
	var list []remark
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range line.FindAllStringSubmatch(string(src), -1) {
			names := strings.Split(strings.ReplaceAll(m[1], " and ", ", "), ", ")
			list = append(list, remark{names: slices.DeleteFunc(names, func(s string) bool { return s == "" }), text: note(m)})
		}
	}
	return list, nil
}

// note is the text of a remark; what limits it to a platform or release stays in it.
func note(m []string) string {
	if at := strings.Index(m[0], " on Windows "); at > 0 {
		return "Windows: " + m[2]
	}
	return m[2]
}

// addRemarks puts remarks on single functions into the notes and keeps those on many for a list of their own.
func (c *compat) addRemarks(list []remark) {
	if c.notes.Functions == nil {
		c.notes.Functions = map[string]string{}
	}
	for _, r := range list {
		for _, name := range r.names {
			if strings.Contains(name, "*") {
				c.general = append(c.general, "`"+name+"`: "+r.text)
				continue
			}
			if have := c.notes.Functions[name]; have != "" {
				c.notes.Functions[name] = have + " " + r.text
			} else {
				c.notes.Functions[name] = r.text
			}
		}
	}
}

// many writes the remarks on many functions at once.
func (c *compat) many(w io.Writer) {
	if len(c.general) == 0 {
		return
	}
	fmt.Fprint(w, "Differences of many functions at once, which the table does not repeat:\n\n")
	for _, text := range c.general {
		fmt.Fprintf(w, "- %s\n", text)
	}
	fmt.Fprintln(w)
}
