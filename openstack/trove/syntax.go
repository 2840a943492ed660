package trove

import (
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// syntax is how a datastore's configuration files are written (trove.common.stream_codecs).
type syntax interface {
	// extension is that of the files of overrides.
	extension() string
	// option is an option of a configuration group. A value that would change another option is an error.
	option(name string, v any) (iniKey, error)
	// merge is the text of a file with some options set.
	merge(text string, set []iniKey) string
	// value is the value of an option in a file, "" if it is missing.
	value(text, name string) string
}

// optionFile is the syntax of MySQL's option files. Overrides are in the server's section.
type optionFile struct{}

func (optionFile) extension() string { return "cnf" }

// option is an option as Trove's codec writes it: None has no "=". A line break would begin another option.
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

// settingFile is the syntax of postgresql.conf. Lines end as those of Trove's codec do.
type settingFile struct{}

func (settingFile) extension() string { return "conf" }

// option is a setting as Trove's codec writes it: texts are quoted unless they are numbers or truth values.
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

// merge keeps the settings of a file that Trove has written; comments are lost.
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

// quoteSetting quotes a value where it is needed. PostgreSQL reads "”" and backslashes in quotes as C does.
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

// parseSetting reads a line: a name, "=" or not, a value in quotes or not, and a comment.
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
	return k, false // a text without an end
}
