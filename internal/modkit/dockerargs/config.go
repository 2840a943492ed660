package dockerargs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// Config converts translated arguments to the body of a request for a new container, as docker-py does. proxies are
// environment settings that come before the container's own, unless use_config_proxy is false. unused are the
// arguments that docker-py does not have. Errors are those of Salt's _client_wrapper.
func Config(image string, kw map[string]any, proxies []any) (body map[string]any, unused []string, err error) {
	host := map[string]any{"NetworkMode": "default"}
	body = map[string]any{"Image": image, "HostConfig": host, "Tty": false, "OpenStdin": false, "NetworkDisabled": false}
	if v, ok := kw["use_config_proxy"]; ok && !pytext.Truth(v) {
		proxies = nil
	}
	if len(proxies) > 0 {
		body["Env"] = proxies
	}
	known := map[string]bool{}
	for _, row := range rows() {
		name, place, key := row[0], row[2], row[3]
		known[name] = place != "-"
		v := kw[name]
		if v == nil || place == "-" {
			continue
		}
		to, attr := host, "create_host_config"
		switch place[0] {
		case 'c':
			to, attr = body, "create_container"
			if place == "c*" {
				v, err = containerValue(name, v, body)
			}
		case 'h':
			v, err = hostValue(name, v, kw)
		default:
			if place[0] == 't' && !pytext.Truth(v) {
				continue
			}
			if want := kindName(place[1:]); want != "" && !isKind(want, v) {
				err = fmt.Errorf("Invalid type for %s param: expected %s but found <class '%s'>", name, want, modules.TypeName(v))
			}
		}
		if err != nil {
			if !modules.IsExecError(err) {
				text := modules.ExceptionText(err)
				err = modules.Errorf("Unable to perform %s: %s", attr, text)
			}
			return nil, nil, err
		}
		if v != nil && key != "-" {
			to[key] = v
		}
	}
	attach := !pytext.Truth(kw["detach"])
	stdin := attach && pytext.Truth(kw["stdin_open"])
	body["AttachStdout"], body["AttachStderr"], body["AttachStdin"], body["StdinOnce"] = attach, attach, stdin, stdin
	if full, ok := kw["host_config"].(map[string]any); ok {
		maps.Copy(host, full)
	}
	for _, name := range slices.Sorted(maps.Keys(kw)) {
		if !known[name] {
			unused = append(unused, name)
		}
	}
	return body, unused, nil
}

func kindName(letter string) string {
	switch letter {
	case "i":
		return "int"
	case "s":
		return "str"
	case "l":
		return "list"
	case "d":
		return "dict"
	}
	return ""
}

func isKind(name string, v any) bool {
	return modules.TypeName(v) == name || name == "int" && isInt(v)
}

// containerValue converts a value of the container's configuration; nil leaves the field out.
func containerValue(name string, v any, body map[string]any) (any, error) {
	switch name {
	case "host_config":
		return nil, nil // merged in later
	case "command", "entrypoint":
		if s, ok := v.(string); ok {
			list, err := shlex.Split(s)
			if err != nil {
				return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
			}
			return anys(list), nil
		}
	case "user":
		return pytext.Str(v), nil
	case "environment":
		before, _ := body["Env"].([]any)
		if isDict(v) {
			for _, p := range Pairs(v) {
				text := pytext.Str(p.Key)
				if p.Value != nil {
					text += "=" + pytext.Str(p.Value)
				}
				before = append(before, text)
			}
			return before, nil
		}
		if list, ok := v.([]any); ok {
			return append(before, list...), nil
		}
	case "ports", "volumes", "labels":
		if s, ok := v.(string); ok && name == "volumes" {
			v = []any{s}
		}
		if list, ok := v.([]any); ok {
			set := map[string]any{}
			for _, x := range list {
				key, value := pytext.Str(x), any(map[string]any{})
				switch {
				case name == "labels":
					value = ""
				case name == "ports" && (!strings.HasSuffix(key, "/udp") || strings.Count(key, "/") > 1):
					key += "/tcp"
				}
				set[key] = value
			}
			return set, nil
		}
	case "healthcheck":
		return healthcheck(v), nil
	}
	return v, nil
}

func healthcheck(v any) any {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		return v
	}
	out := map[string]any{}
	for _, names := range [...][2]string{{"test", "Test"}, {"interval", "Interval"}, {"timeout", "Timeout"}, {"retries", "Retries"}, {"start_period", "StartPeriod"}} {
		if out[names[1]] = m[names[0]]; !has(m, names[0]) {
			out[names[1]] = m[names[1]]
		}
	}
	if s, ok := out["Test"].(string); ok {
		out["Test"] = []any{"CMD-SHELL", s}
	}
	return out
}

// dockerError returns a DockerException of docker-py, which Salt shows unchanged.
func dockerError(format string, args ...any) error { return modules.Errorf(format, args...) }

// hostValue converts a value of the host configuration; nil leaves the field out.
func hostValue(name string, v any, kw map[string]any) (any, error) {
	list, isList := v.([]any)
	switch name {
	case "mem_limit", "memswap_limit", "mem_reservation", "kernel_memory", "shm_size":
		if s, ok := v.(string); ok {
			return parseBytes(s)
		}
		if !pytext.Truth(v) && (name == "mem_reservation" || name == "kernel_memory") {
			return nil, nil
		}
	case "network_mode":
		if v == "host" && pytext.Truth(kw["port_bindings"]) {
			return nil, dockerError(`"host" network_mode is incompatible with port_bindings`)
		}
		if !pytext.Truth(v) {
			return nil, nil
		}
	case "devices":
		return devices(list)
	case "group_add":
		return anys(stringList(list)), nil
	case "sysctls":
		if !pytext.Truth(v) {
			return nil, nil
		}
		if !isDict(v) {
			return nil, fmt.Errorf("Invalid type for sysctls param: expected dict but found <class '%s'>", modules.TypeName(v))
		}
		out := map[string]any{}
		for _, p := range Pairs(v) {
			out[pytext.Str(p.Key)] = pytext.Str(p.Value)
		}
		return out, nil
	case "volumes_from":
		if s, ok := v.(string); ok {
			return anys(strings.Split(s, ",")), nil
		}
	case "binds":
		return volumeBinds(v)
	case "port_bindings":
		return portBindings(v)
	case "extra_hosts":
		if isDict(v) {
			return joined(v), nil
		}
	case "links":
		return Links(v), nil
	case "lxc_conf":
		if isDict(v) {
			out := []any{}
			for _, p := range Pairs(v) {
				out = append(out, map[string]any{"Key": p.Key, "Value": pytext.Str(p.Value)})
			}
			return out, nil
		}
	case "ulimits", "device_requests":
		if !isList {
			return nil, fmt.Errorf("Invalid type for %s param: expected list but found <class '%s'>", name, modules.TypeName(v))
		}
		if name == "ulimits" {
			return each(list, "Name Soft Hard"), nil
		}
		return each(list, "Driver Count DeviceIDs Capabilities Options"), nil
	case "log_config":
		if !isDict(v) {
			return nil, fmt.Errorf("Invalid type for log_config param: expected LogConfig but found <class '%s'>", modules.TypeName(v))
		}
		m := each([]any{v}, "Type Config")[0].(map[string]any)
		if m["Config"] == nil {
			m["Config"] = map[string]any{}
		}
		if !isDict(m["Config"]) {
			return nil, fmt.Errorf("LogConfig.config must be a dictionary")
		}
		return m, nil
	case "userns_mode", "uts_mode":
		if !pytext.Truth(v) {
			return nil, nil
		}
		if v != "host" {
			return nil, fmt.Errorf("Invalid value for %s param: %s", name, pytext.Str(v))
		}
	case "init_path":
		return nil, dockerError("init_path param is not supported in API versions > 1.29")
	case "tmpfs":
		if isList {
			out := map[string]any{}
			for _, x := range list {
				mount, options, _ := strings.Cut(pytext.Str(x), ":")
				out[mount] = options
			}
			return out, nil
		}
	}
	return v, nil
}

// each keeps the named entries of dictionaries. The input has the API's names or lower case with underscores.
func each(list []any, keys string) []any {
	out := make([]any, len(list))
	for i, x := range list {
		m, _ := x.(map[string]any)
		kept := map[string]any{}
		for key := range strings.FieldsSeq(keys) {
			v, ok := m[strings.ToLower(key)]
			if key == "DeviceIDs" {
				v, ok = m["device_ids"]
			}
			if !ok {
				v = m[key]
			}
			if v != nil || len(keys) < 20 {
				kept[key] = v
			}
		}
		out[i] = kept
	}
	return out
}

// joined returns the entries of a dictionary as "key:value".
func joined(v any) []any {
	out := []any{}
	for _, p := range Pairs(v) {
		out = append(out, pytext.Str(p.Key)+":"+pytext.Str(p.Value))
	}
	return out
}

// Links returns the API's list of links to containers.
func Links(v any) any {
	if !isDict(v) {
		return v
	}
	out := []any{}
	for _, p := range Pairs(v) {
		text := pytext.Str(p.Key)
		if pytext.Truth(p.Value) {
			text += ":" + pytext.Str(p.Value)
		}
		out = append(out, text)
	}
	return out
}

// parseBytes reads a size in docker-py's notation: digits, then one of the units b, k, m and g, optionally followed
// by "b".
func parseBytes(s string) (any, error) {
	if s == "" {
		return int64(0), nil
	}
	letter := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
	if n := len(s); n > 1 && letter(s[n-2]) && s[n-1]|0x20 == 'b' {
		s = s[:n-1]
	}
	digits, factor := s, 1.0
	if last := s[len(s)-1]; last < '0' || last > '9' {
		i := strings.IndexByte("bkmg", last|0x20)
		if i < 0 {
			return nil, dockerError("The specified value for memory (%s) should specify the units. The postfix should be one of the `b` `k` `m` `g` characters", s)
		}
		digits, factor = s[:len(s)-1], float64(int64(1)<<(10*i))
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil {
		return nil, dockerError("Failed converting the string value for memory (%s) to an integer.", digits)
	}
	return int64(n * factor), nil
}

func devices(list []any) (any, error) {
	out := []any{}
	for _, x := range list {
		if isDict(x) {
			out = append(out, x)
			continue
		}
		s, ok := x.(string)
		if !ok {
			return nil, dockerError("Invalid device type <class '%s'>", modules.TypeName(x))
		}
		parts := strings.Split(s, ":")
		if len(parts) == 1 {
			parts = append(parts, parts[0])
		}
		if len(parts) == 2 {
			parts = append(parts, "rwm")
		}
		out = append(out, map[string]any{"PathOnHost": parts[0], "PathInContainer": parts[1], "CgroupPermissions": parts[2]})
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

func volumeBinds(v any) (any, error) {
	if !isDict(v) {
		return v, nil
	}
	out := []any{}
	for _, p := range Pairs(v) {
		m, ok := p.Value.(map[string]any)
		if !ok {
			out = append(out, pytext.Str(p.Key)+":"+pytext.Str(p.Value)+":rw")
			continue
		}
		if has(m, "ro") && has(m, "mode") {
			return nil, fmt.Errorf(`Binding cannot contain both "ro" and "mode": %s`, pytext.Repr(m))
		}
		if !has(m, "bind") {
			return nil, fmt.Errorf("'bind'")
		}
		mode := "rw"
		if has(m, "mode") {
			mode = pytext.Str(m["mode"])
		} else if pytext.Truth(m["ro"]) {
			mode = "ro"
		}
		switch spread, _ := m["propagation"].(string); spread {
		case "rshared", "shared", "rslave", "slave", "rprivate", "private":
			mode = strings.TrimPrefix(mode+","+spread, ",")
		}
		out = append(out, pytext.Str(p.Key)+":"+pytext.Str(m["bind"])+":"+mode)
	}
	return out, nil
}

// portBindings returns the API's port bindings, from translated bindings or from docker-py's forms.
func portBindings(v any) (any, error) {
	out := map[string]any{}
	for _, p := range Pairs(v) {
		key := pytext.Str(p.Key)
		if !strings.Contains(key, "/") {
			key += "/tcp"
		}
		list, ok := p.Value.([]any)
		if !ok {
			list = []any{p.Value}
		}
		bound := []any{}
		for _, x := range list {
			at, ok := x.(hostPort)
			if m, isMap := x.(map[string]any); isMap {
				if !has(m, "HostPort") {
					return nil, fmt.Errorf("%s", pytext.Repr(m))
				}
				at = hostPort{m["HostIp"], m["HostPort"]}
			} else if !ok {
				at.port = x
			}
			text := func(v any) string {
				if v == nil {
					return ""
				}
				return pytext.Str(v)
			}
			bound = append(bound, map[string]any{"HostIp": text(at.ip), "HostPort": text(at.port)})
		}
		out[key] = bound
	}
	return out, nil
}

// IPAM returns the address configuration of a network, from its pools and the arguments about addresses, which it
// removes from kw (salt.utils.dockermod create_ipam_config). Errors are those that Salt raises.
func IPAM(pools []any, kw map[string]any) (map[string]any, error) {
	pool := func(m map[string]any) (map[string]any, error) {
		out := map[string]any{}
		for k, v := range m {
			name := ""
			switch k {
			case "subnet":
				name = "Subnet"
			case "iprange":
				name = "IPRange"
			case "gateway":
				name = "Gateway"
			case "aux_addresses":
				name = "AuxiliaryAddresses"
			default:
				return nil, &modules.TypeError{Msg: "IPAMPool.__init__() got an unexpected keyword argument '" + k + "'"}
			}
			if v != nil {
				out[name] = v
			}
		}
		return out, nil
	}
	own := map[string]any{}
	for _, k := range [...]string{"subnet", "iprange", "gateway", "aux_addresses"} {
		if v, ok := kw[k]; ok {
			own[k] = v
		}
	}
	if len(own) > 0 {
		pools = append([]any{own}, pools...)
	}
	config := []any{}
	for _, x := range pools {
		m, _ := x.(map[string]any)
		p, err := pool(m)
		if err != nil {
			return nil, err
		}
		config = append(config, p)
	}
	out := map[string]any{"Driver": "default", "Config": config}
	if v, ok := kw["ipam_driver"]; ok {
		out["Driver"] = v
	}
	options := kw["ipam_opts"]
	if d, ok := Repack(options); ok {
		options = d
	}
	if pytext.Truth(options) {
		if !isDict(options) {
			return nil, &modules.TypeError{Msg: "IPAMConfig options must be a dictionary"}
		}
		out["Options"] = options
	}
	return out, nil
}

// IPAMArgs lists the arguments that [IPAM] uses.
const IPAMArgs = "ipam_driver ipam_opts subnet iprange gateway aux_addresses"
