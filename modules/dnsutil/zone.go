package dnsutil

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func parseZone(_ context.Context, c *modules.Call) (any, error) {
	text := c.Str("zone")
	if c.Bool("zonefile") {
		if b, err := os.ReadFile(c.Path(c.Str("zonefile"))); err == nil {
			text = string(b)
		}
	}
	if text == "" {
		return "Error: Zone data was not found", nil
	}
	z := zone{}
	multi, open := "", false
	for _, line := range pytext.SplitLines(text, false) {
		line, _, _ = strings.Cut(line, ";")
		if line = pytext.Strip(line); line == "" {
			continue
		}
		if strings.HasPrefix(line, "$") {
			f := strings.Fields(line)
			if len(f) < 2 {
				return nil, modules.IndexError()
			}
			z[strings.ReplaceAll(f[0], "$", "")] = f[1]
			continue
		}
		if strings.Contains(line, "(") && !strings.Contains(line, ")") {
			multi, open = "", true
		}
		if open {
			multi += " " + line
			if !strings.Contains(line, ")") {
				continue
			}
			line, open = strings.NewReplacer("(", "", ")", "").Replace(multi), false
		}
		if err := z.record(line); err != nil {
			return nil, err
		}
	}
	return map[string]any(z), nil
}

// zone is the content of a zone file: the fields at its beginning, then records by type.
type zone map[string]any

func (z zone) record(line string) error {
	origin, known := z["ORIGIN"].(string)
	f := strings.Fields(line)
	if known {
		f = strings.Fields(strings.ReplaceAll(line, "@", origin))
	}
	if strings.Contains(line, "SOA") {
		return z.start(f)
	}
	if len(f) > 0 && (f[0] == "IN" || !strings.HasSuffix(f[0], ".") && !strings.Contains(line, "NS")) && !known {
		return &modules.PythonError{Type: "KeyError", Msg: "'ORIGIN'"}
	}
	if len(f) > 0 && f[0] == "IN" {
		f = append([]string{origin}, f...)
	}
	if len(f) < 4 {
		return modules.IndexError()
	}
	if !strings.HasSuffix(f[0], ".") && !strings.Contains(line, "NS") {
		f[0] += "." + origin
	}
	switch {
	case f[2] == "NS":
		list, _ := z["NS"].([]any)
		z["NS"] = append(list, f[3])
	case f[2] == "MX":
		if z["MX"] != nil {
			return nil // stock keeps the first
		}
		if len(f) < 5 {
			return modules.IndexError()
		}
		z["MX"] = []any{map[string]any{"priority": f[3], "host": f[4]}}
	case f[3] == "A" || f[3] == "AAAA":
		if len(f) < 5 {
			return modules.IndexError()
		}
		z.put(f[3], f[0], map[string]any{"TARGET": f[4], "TTL": f[1]})
	default:
		z.put(f[2], f[0], f[3])
	}
	return nil
}

func (z zone) put(kind, name string, v any) {
	m, ok := z[kind].(map[string]any)
	if !ok {
		m = map[string]any{}
		z[kind] = m
	}
	m[name] = v
}

// start reads the record of the start of authority.
func (z zone) start(f []string) error {
	if len(f) > 1 && f[1] != "IN" {
		f = append(f[:1:1], f[2:]...)
	}
	if len(f) < 10 {
		return modules.IndexError()
	}
	z["ORIGIN"], z["NETWORK"], z["SOURCE"], z["SERIAL"] = f[0], f[1], f[3], f[5]
	z["CONTACT"] = strings.Replace(f[4], ".", "@", 1)
	for i, name := range [...]string{"REFRESH", "RETRY", "EXPIRE", "MINTTL"} {
		n, err := toSeconds(f[6+i])
		if err != nil {
			return err
		}
		z[name] = n
	}
	return nil
}

// toSeconds reads 2H, 3D or a number; a week is the most.
func toSeconds(text string) (int64, error) {
	const week = 604800
	text = strings.ToUpper(text)
	unit, letter := int64(0), ""
	switch {
	case strings.Contains(text, "H"):
		unit, letter = 3600, "H"
	case strings.Contains(text, "D"):
		unit, letter = 86400, "D"
	case strings.Contains(text, "W"):
		return week, nil
	default:
		n, err := modules.ToInt(text)
		if err != nil {
			return week, nil
		}
		return min(n, week), nil
	}
	n, err := modules.ToInt(strings.ReplaceAll(text, letter, ""))
	if n > week {
		n = week
	}
	return min(n*unit, week), err
}
