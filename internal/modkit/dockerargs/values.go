package dockerargs

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyip"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// value translates a value of this kind. The error is a [*modules.UsageError] for an invalid value, errUntouched for
// a value that stays unchanged, or an exception that ends the translation.
func (t *translation) value(kind string, v any) (any, error) {
	switch kind {
	case "b":
		return pytext.Truth(v), nil
	case "i":
		if isInt(v) {
			return v, nil
		}
		n, err := modules.ToInt(v)
		if err != nil {
			return nil, modules.Usagef("'%s' is not an integer", pytext.Str(v))
		}
		return n, nil
	case "s":
		return pytext.Str(v), nil
	case "l":
		return anys(listOf(v)), nil
	case "=", ":":
		return keyVal(v, kind)
	case "d":
		if !isDict(v) {
			return nil, modules.Usagef("'%s' is not a dictionary", pytext.Str(v))
		}
		return v, nil
	case "bytes":
		if n, err := modules.ToInt(v); err == nil {
			return n, nil
		}
		return pytext.Str(v), nil
	case "command":
		if list, ok := v.([]any); ok {
			return anys(stringList(list)), nil
		}
		return pytext.Str(v), nil
	case "labels":
		return labels(v)
	case "rates", "numbers":
		return rates(v, kind == "numbers")
	case "weights":
		list, err := mapValues(v, nil, "Path", "Weight")
		return list, numbers(list, err, "Weight", "Weight '%[2]s' for path '%[1]s' is not an integer")
	case "restart":
		return restartPolicy(v)
	case "ulimits":
		return ulimits(v)
	case "user":
		return user(v)
	case "volumes":
		list := listOf(v)
		for _, x := range list {
			if !path.IsAbs(x) {
				return nil, modules.Usagef("'%s' is not an absolute path", x)
			}
		}
		return anys(list), nil
	case "dir":
		s, ok := v.(string)
		if !ok {
			return nil, &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(v)}
		}
		if !path.IsAbs(s) {
			return nil, modules.Usagef("'%s' is not an absolute path", s)
		}
		return v, nil
	case "binds":
		switch s := v.(type) {
		case string:
			return anys(split(s, ",")), nil
		case []any:
			return v, nil
		}
		if !isDict(v) {
			return nil, modules.Usagef("'%s' is not a dictionary or list of bind definitions", pytext.Str(v))
		}
		return v, nil
	case "ports":
		return ports(v)
	case "bindings":
		return t.bindings(v)
	case "pools":
		return t.pools(v)
	}
	return t.addresses(kind, v)
}

// addresses translates and checks addresses.
func (t *translation) addresses(kind string, v any) (any, error) {
	var out any
	var list []string
	switch kind {
	case "dns":
		list = listOf(v)
		out = anys(list)
	case "hosts", "addresses":
		sep := "="
		if kind == "hosts" {
			sep = ":"
		}
		m, err := keyVal(v, sep)
		if err != nil {
			return nil, err
		}
		for _, p := range Pairs(m) {
			list = append(list, pytext.Str(p.Value))
		}
		out = m
	default: // ip, subnet
		list = []string{pytext.Str(v)}
		out = list[0]
	}
	if t.o.AnyAddress {
		return out, nil
	}
	for _, x := range list {
		if kind == "subnet" {
			if _, err := pyip.Network(x, true); err != nil || !strings.Contains(x, "/") {
				return nil, modules.Usagef("'%s' is not a valid subnet", x)
			}
		} else if err := checkIP(x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func checkIP(s string) error {
	if _, err := pyip.Addr(s); err != nil {
		return modules.Usagef("'%s' is not a valid IP address", s)
	}
	return nil
}

// split splits text and trims spaces from the parts.
func split(s, sep string) []string { return cut(s, sep, -1) }

func cut(s, sep string, n int) []string {
	out := strings.SplitN(s, sep, n)
	for i := range out {
		out[i] = pytext.Strip(out[i])
	}
	return out
}

func stringList(list []any) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = pytext.Str(x)
	}
	return out
}

// listOf returns a list of strings: the elements of a list, or the parts of a text separated by commas
// (translate_stringlist).
func listOf(v any) []string {
	if list, ok := v.([]any); ok {
		return stringList(list)
	}
	return split(pytext.Str(v), ",")
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = x
	}
	return out
}

func keyVal(v any, sep string) (any, error) {
	if isDict(v) {
		return v, nil
	}
	out := map[string]any{}
	for _, x := range listOf(v) {
		kv := cut(x, sep, 2)
		if len(kv) < 2 {
			return nil, modules.Usagef("'%s' is not a key%svalue pair", x, sep)
		}
		out[kv[0]] = kv[1]
	}
	return out, nil
}

func labels(v any) (any, error) {
	var list []any
	switch x := v.(type) {
	case map[string]any, map[any]any:
		return v, nil
	case []any:
		list = x
	case string:
		list = anys(split(x, ","))
	default:
		return nil, errUntouched
	}
	out := map[string]any{}
	for _, x := range list {
		if isDict(x) {
			p := Pairs(x)
			if len(p) != 1 {
				return nil, modules.Usagef("Invalid label(s)")
			}
			out[pytext.Str(p[0].Key)] = pytext.Str(p[0].Value)
			continue
		}
		s, ok := x.(string)
		if !ok {
			return nil, errUntouched
		}
		if kv := cut(s, "=", 2); len(kv) == 2 {
			out[kv[0]] = kv[1]
		} else {
			out[s] = ""
		}
	}
	return out, nil
}

// mapValues splits each text at colons and returns a dictionary of the parts (map_vals). fill replaces missing
// parts; without it they are an error.
func mapValues(v, fill any, names ...string) ([]any, error) {
	var out []any
	for _, x := range listOf(v) {
		parts := split(x, ":")
		if n := len(parts); n > len(names) || n < len(names) && fill == nil {
			want := strconv.Itoa(len(names))
			if n > len(names) && fill != nil {
				want = "up to " + want
			}
			return nil, modules.Usagef("'%s' contains %d value(s) (expected %s)", x, n, want)
		}
		m := map[string]any{}
		for i, name := range names {
			if m[name] = fill; i < len(parts) {
				m[name] = parts[i]
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// numbers converts the entry key of each dictionary to an integer. If that fails, the error's text contains the path
// and the value.
func numbers(list []any, err error, key, text string) error {
	for _, x := range list {
		m := x.(map[string]any)
		n, wrong := modules.ToInt(m[key])
		if wrong != nil {
			return modules.Usagef(text, m["Path"], m[key])
		}
		m[key] = n
	}
	return err
}

func rates(v any, numeric bool) (any, error) {
	list, err := mapValues(v, nil, "Path", "Rate")
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		m := x.(map[string]any)
		if !path.IsAbs(m["Path"].(string)) {
			return nil, modules.Usagef("Path '%s' is not absolute", m["Path"])
		}
		if n, wrong := modules.ToInt(m["Rate"]); wrong == nil {
			m["Rate"] = n
		} else if numeric {
			return nil, modules.Usagef("Rate '%s' for path '%s' is non-numeric", m["Rate"], m["Path"])
		}
	}
	return list, nil
}

func restartPolicy(v any) (any, error) {
	list, err := mapValues(v, "0", "Name", "MaximumRetryCount")
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, modules.Usagef("Only one policy is permitted")
	}
	return list[0], numbers(list, nil, "MaximumRetryCount", "Retry count '%[2]s' is non-numeric")
}

func ulimits(v any) (any, error) {
	var out []any
	for _, x := range listOf(v) {
		kv := cut(x, "=", 2)
		if len(kv) < 2 {
			return nil, modules.Usagef("Ulimit definition '%s' is not in the format type=soft_limit[:hard_limit]", x)
		}
		limits := cut(kv[1], ":", 2)
		soft, err1 := modules.ToInt(limits[0])
		hard, err2 := modules.ToInt(limits[len(limits)-1])
		if err1 != nil || err2 != nil {
			return nil, modules.Usagef("Limit '%s' contains non-numeric value(s)", x)
		}
		out = append(out, map[string]any{"Name": kv[0], "Soft": soft, "Hard": hard})
	}
	return out, nil
}

func user(v any) (any, error) {
	if n, err := modules.ToInt(v); err == nil {
		if n < 0 {
			return nil, modules.Usagef("'%d' is an invalid uid", n)
		}
		return n, nil
	}
	if _, ok := v.(string); !ok {
		return nil, modules.Usagef("Value must be a username or uid")
	}
	return v, nil
}

// maxPorts limits the size of a range to the number of ports.
const maxPorts = 1 << 16

// portRange parses a port or a range of ports (get_port_range).
func portRange(s string) (from, to int64, err error) {
	parts := split(s, "-")
	from, err = modules.ToInt(parts[0])
	if to = from; err == nil && len(parts) == 2 {
		to, err = modules.ToInt(parts[1])
	}
	switch {
	case err != nil || len(parts) > 2:
		return 0, 0, modules.Usagef("'%s' is non-numeric or an invalid port range", s)
	case from > to:
		return 0, 0, modules.Usagef("Start of port range (%d) cannot be greater than end of port range (%d)", from, to)
	case to-from >= maxPorts || to-from < 0:
		return 0, 0, modules.Usagef("'%s' has more than %d ports", s, maxPorts)
	}
	return from, to, nil
}

func ports(v any) (any, error) {
	var list []any
	switch x := v.(type) {
	case []any:
		list = x
	case string:
		list = anys(split(x, ","))
	case int64, bool:
		list = []any{v}
	default:
		return nil, modules.Usagef("'%s' is not a valid port definition", pytext.Str(v))
	}
	out := []any{}
	for _, x := range list {
		if isInt(x) {
			out = append(out, x)
			continue
		}
		s, ok := x.(string)
		if !ok {
			return nil, modules.Usagef("'%s' is not a valid port definition", pytext.Str(x))
		}
		s, proto, _ := strings.Cut(s, "/")
		from, to, err := portRange(s)
		if err != nil {
			return nil, err
		}
		for n := from; n <= to; n++ {
			out = append(out, portDef(n, proto))
		}
	}
	return out, nil
}

// A hostPort is where a container's port is bound: an address, a port or both.
type hostPort struct{ ip, port any }

// bindings translates port_bindings to a dictionary by container port. Its values are lists of None, ports and
// hostPorts.
func (t *translation) bindings(v any) (any, error) {
	if isDict(v) {
		return v, nil
	}
	out := map[string]any{}
	for _, binding := range listOf(v) {
		parts := split(binding, ":")
		if len(parts) > 3 {
			return nil, modules.Usagef("'%s' is an invalid port binding definition (at most 3 components are allowed, found %d)", binding, len(parts))
		}
		container := parts[len(parts)-1]
		switch {
		case len(parts) == 1 && container == "":
			return nil, modules.Usagef("Empty port binding definition found")
		case len(parts) == 2 && parts[0] == "":
			return nil, modules.Usagef("Empty host port in port binding definition '%s'", binding)
		case len(parts) == 2 && container == "":
			return nil, modules.Usagef("Empty container port in port binding definition '%s'", binding)
		case len(parts) == 3 && !t.o.AnyAddress:
			if err := checkIP(parts[0]); err != nil {
				return nil, err
			}
		}
		container, proto, _ := strings.Cut(container, "/")
		from, to, err := portRange(container)
		if err != nil {
			return nil, err
		}
		host := int64(-1)
		if len(parts) > 1 && parts[len(parts)-2] != "" {
			text := parts[len(parts)-2]
			begin, end, err := portRange(text)
			if err != nil {
				return nil, err
			}
			if end-begin != to-from {
				return nil, modules.Usagef("Host port range (%s) does not have the same number of ports as the container port range (%s)", text, container)
			}
			host = begin
		}
		for n := from; n <= to; n++ {
			at := hostPort{}
			if host >= 0 {
				at.port = host + n - from
			}
			if len(parts) == 3 {
				at.ip = parts[0]
			}
			key := fmt.Sprint(portDef(n, proto))
			list, _ := out[key].([]any)
			if list = append(list, at); len(list) > 1 {
				for i := range list {
					if list[i] == (hostPort{}) { // with several bindings, none can be any port
						list[i] = hostPort{port: n}
					}
				}
			}
			out[key] = list
		}
	}
	return out, nil
}

// pools translates ipam_pools.
func (t *translation) pools(v any) (any, error) {
	list, ok := v.([]any)
	if !ok || slices.ContainsFunc(list, func(x any) bool { return !isDict(x) }) {
		return nil, modules.Usagef("ipam_pools must be a list of dictionaries")
	}
	if slices.Contains(t.skip, "ipam_pools") {
		return v, nil
	}
	for i, x := range list {
		pool := map[string]any{}
		for _, p := range Pairs(x) {
			key := pytext.Str(p.Key)
			if slices.Contains(t.skip, key) {
				pool[key] = p.Value
				continue
			}
			if name := t.realName(key); name == "iprange" || name == "aux_addresses" {
				key = name
			}
			pool[key] = p.Value
			if kind := t.kind(key); kind != "" {
				strict := *t // Salt ignores validate_ip_addrs here
				strict.o.AnyAddress = false
				var err error
				if pool[key], err = strict.value(kind, p.Value); err != nil {
					return nil, err
				}
			}
		}
		list[i] = pool
	}
	return list, nil
}
