package murano

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// plan is an execution plan.
type plan struct {
	FormatVersion, ID string
	Stamp             int64
	Body              string
	Scripts           map[string]script
	Files             map[string]file
	// Calls are the scripts to run, in order; they replace the Body of Murano's agent. Without Calls each script runs
	// once, without arguments, in the plan's order.
	Calls []call

	missing []string // required keys that are missing
	names   []string // names of scripts, in the plan's order
}

// script is a script of a plan.
type script struct {
	Type, EntryPoint string
	Files            []fileName
	Options          map[string]any
}

// is reports whether an option is on. Options are on by default.
func (s script) is(name string) bool {
	v, ok := s.Options[name]
	return !ok || v == true
}

// fileName is the id of a file. In a plan it may also be a map with the id as its only key.
type fileName string

func (f *fileName) UnmarshalJSON(b []byte) error {
	var one map[string]any
	if json.Unmarshal(b, &one) == nil && len(one) == 1 {
		for name := range one {
			*f = fileName(name)
		}
		return nil
	}
	return json.Unmarshal(b, (*string)(f))
}

// file is a file of a plan: its content or its URL.
type file struct {
	Name           string
	BodyType, Body *string
	Type, URL      *string
}

// call is a run of a script.
type call struct {
	Script      string
	CommandLine string         // for an Application
	Input       string         // its standard input
	Attributes  map[string]any // for a recipe or class
}

// maxPlan limits the size of a plan with its files.
const maxPlan = 64 << 20

// parsePlan parses a plan. validate checks its content.
func parsePlan(text []byte) (*plan, error) {
	if len(text) > maxPlan {
		return nil, fmt.Errorf("cannot take the plan: it has more than %d bytes", maxPlan)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil || keys == nil {
		return nil, fmt.Errorf("cannot take the plan: it is not a JSON object: %w", errors.Join(err))
	}
	p := &plan{FormatVersion: "1.0.0"}
	// For an unknown format, only the version, stamp and id are parsed.
	for _, k := range [...]struct {
		name string
		to   any
	}{{"FormatVersion", &p.FormatVersion}, {"ID", &p.ID}, {"Stamp", &p.Stamp}} {
		if raw, ok := keys[k.name]; ok {
			if err := json.Unmarshal(raw, k.to); err != nil {
				return nil, fmt.Errorf("cannot take the plan: its %s: %w", k.name, err)
			}
		}
	}
	if !slices.Contains(formats(), p.FormatVersion) {
		return p, nil
	}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("cannot take the plan: %w", err)
	}
	for _, name := range [...]string{"Scripts", "Files"} {
		if _, ok := keys[name]; !ok {
			p.missing = append(p.missing, name)
		}
	}
	p.names = keysOf(keys["Scripts"])
	return p, nil
}

// keysOf returns the keys of a JSON object in order.
func keysOf(raw json.RawMessage) []string {
	var keys []string
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		var skip json.RawMessage
		if err != nil || d.Decode(&skip) != nil {
			return nil
		}
		if name := t.(string); !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
	}
	return keys
}

// formats returns the supported formats.
func formats() []string { return []string{"2.0.0", "2.1.0", "2.2.0"} }

const bodyRefused = "the plan has a Body, which is Python: this agent runs no code of a plan but its Scripts. Leave the Body out, and name in " +
	"Calls which scripts run, with CommandLine, Input or Attributes"

func wrong(format string, args ...any) error {
	return &planError{code: 2, text: fmt.Sprintf(format, args...)}
}

// validate checks a plan by the rules of muranoagent/validation.py, with the same texts.
func (p *plan) validate() error {
	if !slices.Contains(formats(), p.FormatVersion) {
		return &planError{code: 9, text: fmt.Sprintf("Unsupported format version %s (I support versions %s)", p.FormatVersion, strings.Join(formats(), ", "))}
	}
	if len(p.missing) > 0 {
		return wrong("%s is not in the execution plan", p.missing[0])
	}
	for _, name := range p.names {
		if err := p.validateScript(name, p.Scripts[name]); err != nil {
			return err
		}
	}
	for id, f := range p.Files {
		if err := p.validateFile(id, f); err != nil {
			return err
		}
	}
	// Murano sends the Body "return" to check whether an agent responds.
	if body := strings.TrimSpace(p.Body); body != "" && body != "return" {
		return wrong(bodyRefused)
	}
	for _, c := range p.Calls {
		s, ok := p.Scripts[c.Script]
		if !ok {
			return wrong("Calls names the script %q, which the plan does not have", c.Script)
		}
		if s.Type != application && (c.CommandLine != "" || c.Input != "") || s.Type == application && c.Attributes != nil {
			return wrong("the call of %s has an argument that a script of the type %s does not take", c.Script, s.Type)
		}
	}
	return nil
}

const application, chef, puppet = "Application", "Chef", "Puppet"

func (p *plan) validateScript(name string, s script) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return wrong("the name %q of a script cannot be that of a directory", name)
	}
	for _, attr := range [...][2]string{{"Type", s.Type}, {"EntryPoint", s.EntryPoint}} {
		if attr[1] == "" {
			return wrong("Incorrect %s entry in script %s", attr[0], name)
		}
	}
	if p.FormatVersion == "2.0.0" && s.Type != application {
		return wrong("Type %s is not valid for format %s", s.Type, p.FormatVersion)
	}
	if s.Type != application && s.Type != chef && s.Type != puppet {
		return wrong("Script has not a valid type %s", s.Type)
	}
	if _, ok := p.Files[s.EntryPoint]; s.Type == application && !ok {
		return wrong("Script %s misses entry point %s", name, s.EntryPoint)
	}
	if s.Type != application && !strings.Contains(s.EntryPoint, "::") {
		return wrong("Wrong EntryPoint %s for Puppet/Chef executors. :: needed", s.EntryPoint)
	}
	if s.Type != application && !recipe(s.EntryPoint) {
		return wrong("Wrong EntryPoint %s for Puppet/Chef executors: it is no name of a class or recipe", s.EntryPoint)
	}
	for _, option := range [...]string{"useBerkshelf", "berksfilePath"} {
		if _, ok := s.Options[option]; !ok {
			continue
		}
		if p.FormatVersion != "2.2.0" {
			return wrong("Script has an option %s invalid for version %s", option, p.FormatVersion)
		}
		if s.Type != chef {
			return wrong("Script has an option %s invalid for type %s", option, s.Type)
		}
	}
	for _, id := range s.Files {
		if _, ok := p.Files[string(id)]; !ok {
			return wrong("Script %s misses file %s", name, id)
		}
	}
	return nil
}

func (p *plan) validateFile(id string, f file) error {
	if p.FormatVersion == "2.0.0" && (f.Type != nil || f.URL != nil) {
		return wrong("Download file is %s not valid for this version %s", id, p.FormatVersion)
	}
	need := func(attr string, there bool) error {
		if there {
			return nil
		}
		return wrong("Incorrect %s entry in file %s", attr, id)
	}
	switch {
	case f.Type != nil:
		if err := errors.Join(need("URL", f.URL != nil), need("Name", f.Name != "")); err != nil {
			return err
		}
	case f.Body != nil:
		if err := errors.Join(need("BodyType", f.BodyType != nil), need("Name", f.Name != "")); err != nil {
			return err
		}
		if *f.BodyType != "Text" && *f.BodyType != "Base64" {
			return wrong("Incorrect BodyType in file %s", id)
		}
	default:
		return wrong("Invalid file %s", id)
	}
	return nil
}

// recipe reports whether a name is valid for a class or recipe. It is inserted into a manifest and a run list.
func recipe(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-:", r))
	})
}
