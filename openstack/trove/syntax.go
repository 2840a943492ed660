package trove

import (
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// syntax is the format of a datastore's configuration files (trove.common.stream_codecs).
type syntax interface {
	// extension returns the extension of override files.
	extension() string
	// option converts an option of a configuration group. A value that would change another option is an error.
	option(name string, v any) (iniKey, error)
	// merge returns the text of a file with some options set.
	merge(text string, set []iniKey) string
	// value returns the value of an option in a file, or "" if it is missing.
	value(text, name string) string
}

// optionFile is the syntax of MySQL's option files. Overrides are in the section of the server.
type optionFile struct{}

func (optionFile) extension() string { return "cnf" }

// option returns an option as Trove's codec writes it: an option with the value None has no "=". A line break would
// start another option.
func (optionFile) option(name string, v any) (iniKey, error) {
	k := iniKey{name: foldOption(name), has: v != nil}
	if k.has {
		k.value = pytext.Str(v)
	}
	if err := checkOption(name, k); err != nil {
		return k, err
	}
	if k.name == "" || k.name[0] == '[' || k.name[0] == '!' {
		return k, modules.Errorf("cannot write the option %s: this is not an option's name", pytext.Repr(name))
	}
	return k, nil
}

func checkOption(name string, k iniKey) error {
	for _, r := range k.name + k.value {
		if r < ' ' {
			return modules.Errorf("cannot write the option %s: it has a line break or another control character", pytext.Repr(name))
		}
	}
	return nil
}

func (optionFile) merge(text string, set []iniKey) string {
	file := parseINI(text)
	file.section(serverSection)
	s := &file[len(file)-1]
	for _, k := range set {
		s.set(k)
	}
	return file.String()
}

func (optionFile) value(text, name string) string { return parseINI(text).get(serverSection, name) }

// settingFile is the syntax of postgresql.conf. Lines end as in Trove's codec.
type settingFile struct{}

func (settingFile) extension() string { return "conf" }

// option returns a setting as Trove's codec writes it: texts are quoted unless they are numbers or booleans.
func (settingFile) option(name string, v any) (iniKey, error) {
	k := iniKey{name: name, has: true}
	if !isVariable(name) {
		return k, modules.Errorf("cannot write the option %s: this is not an option's name", pytext.Repr(name))
	}
	switch v := v.(type) {
	case nil:
		return k, modules.Errorf("cannot write the option %s: it has no value", name)
	case bool:
		k.value = strconv.FormatBool(v)
	default:
		k.value = pytext.Str(v)
	}
	return k, checkOption(name, k)
}

// merge keeps the settings of a file that Trove has written, but not its comments.
func (f settingFile) merge(text string, set []iniKey) string {
	var s iniSection
	for line := range strings.Lines(text) {
		if k, ok := parseSetting(line); ok {
			s.set(k)
		}
	}
	for _, k := range set {
		s.set(k)
	}
	lines := make([]string, len(s.keys))
	for i, k := range s.keys {
		lines[i] = k.name + "=" + quoteSetting(k.value)
	}
	return strings.Join(lines, "\r\n")
}

func (settingFile) value(text, name string) (value string) {
	for line := range strings.Lines(text) {
		if k, ok := parseSetting(line); ok && k.name == name {
			value = k.value
		}
	}
	return value
}

// quoteSetting quotes a value if needed. In quotes, PostgreSQL reads a doubled quote as one quote, and backslashes as
// C does.
func quoteSetting(v string) string {
	digits := strings.TrimLeft(strings.TrimLeft(v, "+-"), "0123456789")
	switch {
	case v != "" && digits == "" && v != "+" && v != "-":
		return v
	case strings.EqualFold(v, "true"), strings.EqualFold(v, "false"):
		return v
	case v != "" && v[0] >= '0' && v[0] <= '9' && len(digits) <= 2 && strings.ContainsRune("kKmMgGtTpP", rune(digits[0])) &&
		strings.Trim(digits[1:], "bB") == "":
		return v
	}
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(v) + "'"
}

// parseSetting parses a line: a name, an optional "=", a value that may be quoted, and a comment.
func parseSetting(line string) (k iniKey, ok bool) {
	line = strings.TrimSpace(line)
	n := strings.IndexFunc(line, func(r rune) bool { return !isVariable(string(r)) })
	if n <= 0 {
		return k, false
	}
	k.name, k.has = line[:n], true
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line[n:]), "="))
	if !strings.HasPrefix(rest, "'") {
		rest, _, _ = strings.Cut(rest, "#")
		k.value = strings.TrimSpace(rest)
		return k, true
	}
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\'' && i+1 < len(rest) && rest[i+1] == '\'', rest[i] == '\\' && i+1 < len(rest):
			i++
		case rest[i] == '\'':
			k.value = b.String()
			return k, true
		}
		b.WriteByte(rest[i])
	}
	return k, false // the quoted text has no end
}
