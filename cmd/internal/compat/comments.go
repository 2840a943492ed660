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

// remark is a line of the comment on compatibility in a module's source:
//
//	// cmd.tty differs: only names of terminals are taken.
//	// saltutil.runner, saltutil.wheel are absent: they are Python code of a master on the same host.
//	// cmd.* differ: a command reads nothing if no stdin is given.
type remark struct {
	names []string
	text  string
}

// remarksIn returns the remarks in the modules of a directory. A remark continues on the following lines until the
// next one.
func remarksIn(dir string) ([]remark, error) {
	files, err := filepath.Glob(dir + "/*/*.go")
	if err != nil {
		return nil, err
	}
	line := regexp.MustCompile(`^// ((?:[a-z_0-9]+\.[A-Za-z_0-9*]+(?:, | and )?)+)(?: on [A-Z][a-z]+)? (?:differs?|absent|is absent|are absent): (.+)$`)
	next := regexp.MustCompile(`^// [a-z_0-9]+\.[A-Za-z_0-9*]+[ ,]`)
	var list []remark
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		within := false
		for text := range strings.SplitSeq(string(src), "\n") {
			m := line.FindStringSubmatch(text)
			more, comment := strings.CutPrefix(text, "// ")
			switch {
			case m != nil:
				names := strings.Split(strings.ReplaceAll(m[1], " and ", ", "), ", ")
				list = append(list, remark{names: slices.DeleteFunc(names,
					func(s string) bool { return s == "" }), text: noteText(m)})
				within = true
			case within && comment && !next.MatchString(text):
				list[len(list)-1].text += " " + more
			default:
				within = false
			}
		}
	}
	return list, nil
}

// noteText returns the text of a remark, with the platform that it is limited to.
func noteText(m []string) string {
	if at := strings.Index(m[0], " on Windows "); at > 0 {
		return "Windows: " + m[2]
	}
	return m[2]
}

// addRemarks adds remarks about single functions to the notes, and returns those about several functions.
func addRemarks(notes *map[string]string, list []remark) (general []string) {
	if *notes == nil {
		*notes = map[string]string{}
	}
	for _, r := range list {
		for _, name := range r.names {
			if strings.Contains(name, "*") {
				general = append(general, "`"+name+"`: "+r.text)
				continue
			}
			if have := (*notes)[name]; have != "" {
				(*notes)[name] = have + " " + r.text
			} else {
				(*notes)[name] = r.text
			}
		}
	}
	return general
}

// many writes the remarks about several functions.
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
