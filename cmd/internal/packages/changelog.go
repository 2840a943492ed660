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

// packager is the author in the packages' changelogs.
const packager = "The brine authors <brine-salt@users.noreply.github.com>"

// commitTime returns the time of the last commit. It is the time of files and changelogs in packages, so that the
// same sources result in the same packages.
func commitTime() (int64, error) {
	out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
	if err != nil {
		return 0, fmt.Errorf("cannot read the time of the last commit: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// changesOf returns the section of a version in CHANGELOG.md, or the section "Unreleased" if the version has no
// section.
func changesOf(text, version string) ([]string, error) {
	notes := sectionLines(text, "## "+version)
	if notes == nil {
		notes = sectionLines(text, "## Unreleased")
	}
	if len(notes) == 0 {
		return nil, fmt.Errorf("CHANGELOG.md has no changes of %s, nor unreleased ones", version)
	}
	return notes, nil
}

// rpmChangelog returns the changelog in nfpm's format. It is used only for rpm: the lines that nfpm writes for
// Debian's changelog are too long.
func rpmChangelog(notes []string, version string, epoch int64) (string, error) {
	type note struct {
		Note string `yaml:"note"`
	}
	changes := make([]note, len(notes))
	for i, n := range notes {
		changes[i] = note{n}
	}
	out, err := yaml.Marshal([]map[string]any{{"semver": version + "-1",
		"date": time.Unix(epoch, 0).UTC().Format(time.RFC3339), "packager": packager,
		"changes": changes}})
	return string(out), err
}

// debChangelog returns the Debian changelog of a package (deb-changelog(5)). As nfpm writes it, a pre-release version
// has "~".
func debChangelog(notes []string, name, version string, epoch int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s-1) stable; urgency=medium\n\n", name, strings.Replace(version, "-", "~", 1))
	for _, n := range notes {
		fmt.Fprintf(&b, "  * %s\n", strings.Join(textwrap.Wrap(n, 74), "\n    "))
	}
	fmt.Fprintf(&b, "\n -- %s  %s\n", packager, time.Unix(epoch, 0).UTC().Format(time.RFC1123Z))
	return b.String()
}

// sectionLines returns the list entries below a heading, one per line, without headings within the section. It
// returns nil if the heading is missing.
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
		case !inside || line == "" || strings.HasPrefix(line, "### "):
		case strings.HasPrefix(line, "- "):
			list = append(list, line[2:])
		case len(list) > 0:
			list[len(list)-1] += " " + strings.TrimSpace(line)
		}
	}
	return list
}
