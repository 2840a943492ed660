package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/brine-salt/brine/internal/python/textwrap"
)

// packager is who stands in the packages' changelogs.
const packager = "The brine authors <brine-salt@users.noreply.github.com>"

// commitTime is the time of the last commit, which files and changelogs of the packages have: the same sources make the
// same packages.
func commitTime() (int64, error) {
	out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
	if err != nil {
		return 0, fmt.Errorf("cannot read the time of the last commit: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// debChangelog is the section of a version in CHANGELOG.md, or of "Unreleased" if it has none of its own, as nfpm reads
// it.
func debChangelog(text, version string, epoch int64) (string, error) {
	notes := sectionLines(text, "## "+version)
	if notes == nil {
		notes = sectionLines(text, "## Unreleased")
	}
	if len(notes) == 0 {
		return "", fmt.Errorf("CHANGELOG.md has no changes of %s, nor unreleased ones", version)
	}
	type note struct {
		Note string `yaml:"note"`
	}
	changes := make([]note, len(notes))
	for i, n := range notes {
		changes[i] = note{strings.Join(textwrap.Wrap(n, 74), "\n    ")}
	}
	out, err := yaml.Marshal([]map[string]any{{"semver": version,
		"date": time.Unix(epoch, 0).UTC().Format(time.RFC3339), "packager": packager,
		"deb":     map[string]any{"urgency": "medium", "distributions": []string{"stable"}},
		"changes": changes}})
	return string(out), err
}

// sectionLines returns the list below a heading, each entry in one line; nil if there is no such heading.
func sectionLines(text, heading string) []string {
	var list []string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "## "):
			if inside {
				return list
			}
			inside = line == heading || strings.HasPrefix(line, heading+" ")
		case !inside || line == "":
		case strings.HasPrefix(line, "- "):
			list = append(list, line[2:])
		case len(list) > 0:
			list[len(list)-1] += " " + strings.TrimSpace(line)
		}
	}
	return list
}
