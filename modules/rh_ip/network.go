package rh_ip

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/ifcfg"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// current reads the settings of the whole host, with their names in lower case.
func current(c *modules.Call) map[string]any {
	out := map[string]any{}
	text, _ := os.ReadFile(c.Path(networkFile))
	for _, line := range pytext.SplitLines(string(text), false) {
		line = pytext.Strip(line)
		if line == "" || line[0] == '!' || line[0] == '#' {
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok {
			out[strings.ToLower(strings.ToUpper(pytext.StripRight(name)))] = pytext.StripRight(value)
		}
	}
	return out
}

// quote returns the quotation mark that a text is enclosed in, or "". An empty text is an error, as in stock.
func quote(v any) (string, error) {
	s, ok := v.(string)
	switch {
	case !ok:
		return "", nil
	case s == "":
		return "", &modules.PythonError{Type: "IndexError", Msg: "string index out of range"}
	case s[0] == s[len(s)-1] && (s[0] == '"' || s[0] == '\''):
		return s[:1], nil
	}
	return "", nil
}

// dequoted returns a value without enclosing quotation marks.
func dequoted(v any) (any, error) {
	q, err := quote(v)
	if err != nil || q == "" {
		return v, err
	}
	s := v.(string)
	return s[1:max(1, len(s)-1)], nil
}

// network judges the settings of the whole host.
func network(opts, now map[string]any) (map[string]any, error) {
	out := map[string]any{}
	if pytext.Truth(opts["retain_settings"]) {
		out = maps.Clone(now)
	}
	mark := ""
	if v, ok := opts["enabled"]; ok {
		opts["networking"] = v
	} else {
		v, ok := now["networking"]
		if !ok {
			return nil, ifcfg.KeyError("networking")
		}
		var err error
		if mark, err = quote(v); err != nil {
			return nil, err
		}
		opts["networking"] = v
	}
	yesNo := func(name string) error {
		v, err := dequoted(opts[name])
		if err != nil {
			return err
		}
		on, valid := ifcfg.Truth(v)
		if !valid {
			return ifcfg.InvalidNetwork(name, ifcfg.YesNo)
		}
		out[name] = mark + map[bool]string{true: "yes", false: "no"}[on] + mark
		return nil
	}
	text := func(name string) error {
		v, err := dequoted(opts[name])
		out[name] = mark + pytext.Str(v) + mark
		return err
	}
	if err := yesNo("networking"); err != nil {
		return nil, err
	}
	if _, ok := opts["hostname"]; !ok {
		opts["hostname"] = now["hostname"]
	}
	if !pytext.Truth(opts["hostname"]) {
		return nil, ifcfg.InvalidNetwork("hostname", "server1.example.com")
	}
	if err := text("hostname"); err != nil {
		return nil, err
	}
	if _, ok := opts["nozeroconf"]; ok {
		if err := yesNo("nozeroconf"); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(opts)) {
		switch name {
		case "networking", "hostname", "nozeroconf":
			continue
		}
		if err := text(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func buildNetworkSettings(_ context.Context, c *modules.Call) (any, error) {
	set, err := network(lowered(c.Keywords), current(c))
	if err != nil {
		return nil, err
	}
	text := networkText(set)
	test, ok := c.Keywords["test"]
	switch {
	case !ok:
		return nil, ifcfg.KeyError("test")
	case pytext.Truth(test):
		return shown(text), nil
	}
	if err := write(c, networkFile, text); err != nil {
		return nil, err
	}
	return contents(c, networkFile), nil
}
