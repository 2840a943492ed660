package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// maxLines is how long a page may be. A longer one is split, with a link from one part to the other.
const maxLines = 250

// TestLinks: every link to a file or a heading of the repository leads to it, every make target and every path that a
// page names exists, no page is too long or has marks of a merge conflict,
// and each table has a header.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "*/*.md", "../*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 50 {
		t.Fatalf("only %d pages are found", len(pages))
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllSubmatch(makefile, -1) {
		targets = append(targets, string(m[1]))
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	target := regexp.MustCompile("(?:^ +|`)make ([a-z][a-z-]*)")
	path := regexp.MustCompile("`((?:cmd|docs|examples|internal|interop|master|minion|modules|openstack|pkg|protocol|states)/[\\w./*-]+)`")
	code := regexp.MustCompile("`[^`]*`")
	rule := regexp.MustCompile(`^\|[-:| ]+\|$`)
	for _, page := range pages {
		lines := readLines(t, page)
		if len(lines) > maxLines {
			t.Errorf("%s has %d lines, more than %d: make it two pages", page, len(lines), maxLines)
		}
		fenced := false
		for i, line := range lines {
			fenced = fenced != strings.HasPrefix(line, "```")
			if !fenced && strings.HasPrefix(line, "|") && (i == 0 || !strings.HasPrefix(lines[i-1], "|")) &&
				(i+1 == len(lines) || !rule.MatchString(lines[i+1])) {
				t.Errorf("%s:%d: a table without a header is not shown as a table", page, i+1)
			}
			if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
				t.Errorf("%s:%d: a mark of a merge conflict", page, i+1)
			}
			for _, m := range target.FindAllStringSubmatch(line, -1) {
				if !slices.Contains(targets, m[1]) {
					t.Errorf("%s:%d: there is no target make %s", page, i+1, m[1])
				}
			}
			if fenced {
				continue
			}
			for _, m := range path.FindAllStringSubmatch(line, -1) {
				if !exists(filepath.Join("..", m[1])) && !exists(filepath.Join("..", "openstack", m[1])) {
					t.Errorf("%s:%d: there is no %s", page, i+1, m[1])
				}
			}
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				if to := m[1]; !strings.Contains(to, ":") && !leads(t, page, to) {
					t.Errorf("%s:%d: the link to %s leads nowhere", page, i+1, to)
				}
			}
		}
	}
}

// leads reports whether the file of a link exists, and has its heading.
func leads(t *testing.T, page, to string) bool {
	file, anchor, _ := strings.Cut(to, "#")
	at := page
	if file != "" {
		at = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
	}
	if !exists(at) {
		return false
	}
	return anchor == "" || filepath.Ext(at) != ".md" || slices.Contains(anchors(readLines(t, at)), anchor)
}

func exists(pattern string) bool {
	found, err := filepath.Glob(pattern)
	return err == nil && len(found) > 0
}

// anchors returns the names of a page's headings, as GitHub forms them.
func anchors(lines []string) []string {
	var names []string
	fenced := false
	for _, line := range lines {
		fenced = fenced != strings.HasPrefix(line, "```")
		marks, title, ok := strings.Cut(line, " ")
		if fenced || !ok || marks == "" || strings.Trim(marks, "#") != "" {
			continue
		}
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title)))
	}
	return names
}

func readLines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}
