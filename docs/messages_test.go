package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMessages compares the texts on the page of messages with the sources: each fixed part of one is in a string of a program.
func TestMessages(t *testing.T) {
	page, err := os.ReadFile("messages.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, dir := range []string{"master", "minion", "protocol", "cmd", "internal", "states", "modules"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			sources.Write(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// A text that is longer than a line is several literals in the source.
	all, n := regexp.MustCompile(`" ?\+\s*"`).ReplaceAllString(sources.String(), ""), 0
	for _, row := range regexp.MustCompile("(?m)^\\| (`.+?) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, part := range regexp.MustCompile("`[^`]*`").FindAllString(row[1], -1) {
			for _, text := range strings.Split(strings.Trim(part, "`"), "…") {
				text = strings.Trim(text, " '")
				if len(text) < 4 {
					continue
				}
				n++
				if !strings.Contains(all, text) {
					t.Errorf("no program says %q", text)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("the page has %d texts", n)
	}
}
