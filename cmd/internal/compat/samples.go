package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// samplePath returns the path of a role's commented configuration file, which the packages install.
func samplePath(role string) string { return "pkg/etc/" + role }

// files returns all files that are generated from the table, except the pages, by path.
func (t *optionTable) files() (map[string]string, error) {
	files, err := t.goTables()
	if err != nil {
		return nil, err
	}
	for _, role := range []string{minion, master} {
		text, err := t.sample(role)
		if err != nil {
			return nil, err
		}
		maps.Copy(files, map[string]string{samplePath(role): text})
	}
	return files, nil
}

// notInSamples are an option that the command line sets, and an old name of an option.
var notInSamples = []string{"conf_file", "environment"}

// sample returns the configuration file of a role: all options with an effect, by theme, as comments with their
// defaults.
func (t *optionTable) sample(role string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `# Configuration of the Salt %s. Options that are comments show their defaults; remove "#" to change
# one. Lines that begin with "#  " belong to the option above them. Files in /etc/salt/%[1]s.d that
# end in .conf are read after this one. "brine-%[1]s check" examines them all.
`, role)
	theme := ""
	for _, o := range t.options {
		if !o.hasEffect(role) || slices.Contains(notInSamples, o.name) {
			continue
		}
		if o.theme != theme {
			theme = o.theme
			fmt.Fprintf(&b, "\n\n### %s\n", theme)
		}
		b.WriteString("\n")
		doc := o.doc
		if role == master && o.name == "user" {
			doc += " salt-master.service starts it as this user, too; for another one, change both."
			writeComment(&b, doc)
			b.WriteString("user: salt\n")
			continue
		}
		writeComment(&b, doc)
		text, err := blockText(o.name, o.value(role))
		if err != nil {
			return "", fmt.Errorf("cannot print the default of %s: %w", o.name, err)
		}
		for line := range strings.Lines(text) {
			b.WriteString("#" + line)
		}
	}
	return b.String(), nil
}

// blockText formats an option and its value as YAML in block style.
func blockText(name string, v any) (string, error) {
	if v == nil {
		return name + ":\n", nil
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if f, ok := v.(float64); ok {
		v = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: floatText(f)}
	}
	if err := e.Encode(map[string]any{name: v}); err != nil {
		return "", err
	}
	return b.String(), e.Close()
}

// commentWidth is the maximum length of a comment's line.
const commentWidth = 100

// writeComment writes words as lines that begin with "# ". It removes Markdown's marks for code.
func writeComment(b *strings.Builder, text string) {
	line := "#"
	for word := range strings.FieldsSeq(strings.ReplaceAll(text, "`", "")) {
		if len(line)+1+len(word) > commentWidth {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
