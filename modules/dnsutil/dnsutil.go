// Package dnsutil is Salt's execution module "dnsutil". Salt's source: salt/modules/dnsutil.py.
package dnsutil

import (
	"context"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const needsDig = "This function requires dig, which is not currently available"

func checkIP(ctx context.Context, c *modules.Call) (any, error) {
	return viaDig(ctx, c, "dig.check_ip", c.Value("ip_addr"))
}

// viaDig calls a function of module dig, if the host has the program.
func viaDig(ctx context.Context, c *modules.Call, fun string, args ...any) (any, error) {
	if c.Which("dig") == "" {
		return needsDig, nil
	}
	return c.Exec(ctx, fun, args...)
}

func lookupNS(ctx context.Context, c *modules.Call) (any, error) {
	return viaDig(ctx, c, "dig.NS", c.Value("domain"), c.Value("resolve"), c.Value("nameserver"))
}

func lookupMX(ctx context.Context, c *modules.Call) (any, error) {
	return viaDig(ctx, c, "dig.MX", c.Value("domain"), c.Value("resolve"), c.Value("nameserver"))
}

func lookupSPF(ctx context.Context, c *modules.Call) (any, error) {
	return viaDig(ctx, c, "dig.SPF", c.Value("domain"), c.Value("record"), c.Value("nameserver"))
}

func lookupA(ctx context.Context, c *modules.Call) (any, error) {
	return resolve(ctx, c, "dig.A", "ip4")
}

func lookupAAAA(ctx context.Context, c *modules.Call) (any, error) {
	return resolve(ctx, c, "dig.AAAA", "ip6")
}

// resolve queries dig, or the host's resolver if dig is missing.
func resolve(ctx context.Context, c *modules.Call, fun, network string) (any, error) {
	if c.Which("dig") != "" || c.Value("nameserver") != nil {
		return viaDig(ctx, c, fun, c.Value("host"), c.Value("nameserver"))
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, network, c.Str("host"))
	if err != nil {
		return "Unable to resolve " + c.Str("host"), nil
	}
	out := make([]any, len(list))
	for i, a := range list {
		out[i] = a.Unmap().String()
	}
	return out, nil
}

func parseHosts(_ context.Context, c *modules.Call) (any, error) {
	text := c.Str("hosts")
	if !c.Bool("hosts") {
		b, err := os.ReadFile(c.Path(c.Str("hostsfile")))
		if err != nil {
			return "Error: hosts data was not found", nil
		}
		text = string(b)
	}
	return modules.Answer(hosts(text))
}

// hosts parses a hosts file and returns the names of each address.
func hosts(text string) (map[string]any, error) {
	out := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		f := strings.Fields(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) == 0 {
			return nil, modules.IndexError()
		}
		names, _ := out[f[0]].([]any)
		if names == nil {
			names = []any{}
		}
		for _, n := range f[1:] {
			names = append(names, n)
		}
		out[f[0]] = names
	}
	return out, nil
}

func entries(c *modules.Call) ([]string, error) {
	s, ok := c.Value("entries").(string)
	if !ok {
		return nil, modules.NoAttribute(c.Value("entries"), "split")
	}
	if strings.Contains(s, "\n") {
		return nil, modules.Usagef("the names must be one line")
	}
	return strings.Split(s, ","), nil
}

func hostsAppend(_ context.Context, c *modules.Call) (any, error) {
	list, err := entries(c)
	if err != nil {
		return nil, err
	}
	file, ip := c.Str("hostsfile"), pytext.Str(c.Value("ip_addr"))
	text, err := os.ReadFile(c.Path(file))
	if err != nil && !os.IsNotExist(err) {
		return nil, modules.OSError(err)
	}
	known, err := hosts(string(text))
	if err != nil {
		return nil, err
	}
	if names, ok := known[ip].([]any); ok {
		for i := 0; i < len(list); i++ { // as Python removes from a list that it walks: the one after each is passed over
			if slices.Contains(names, any(list[i])) {
				first := slices.Index(list, list[i])
				list = slices.Delete(list, first, first+1)
			}
		}
	}
	if len(list) == 0 {
		return "No additional hosts were added to " + file, nil
	}
	line := "\n" + ip + " " + strings.Join(list, " ")
	if err := atomicfile.Replace(c.Path(file), append(text, line...), 0o644); err != nil {
		return nil, modules.OSError(err)
	}
	return "The following line was added to " + file + ":" + line, nil
}

func hostsRemove(_ context.Context, c *modules.Call) (any, error) {
	file := c.Str("hostsfile")
	text, err := os.ReadFile(c.Path(file))
	if err != nil {
		return nil, modules.OSError(err)
	}
	list, err := entries(c)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, line := range pytext.SplitLines(string(text), false) {
		f := strings.Fields(line)
		if line == "" || strings.HasPrefix(pytext.Strip(line), "#") {
			b.WriteString(line + "\n")
			continue
		}
		for _, host := range list {
			if i := slices.Index(f, host); i >= 0 && slices.Contains(f[1:], host) {
				f = slices.Delete(f, i, i+1)
			}
		}
		if len(f) > 1 {
			b.WriteString(strings.Join(f, " ") + "\n")
		}
	}
	if err := atomicfile.Replace(c.Path(file), []byte(b.String()), 0o644); err != nil {
		return nil, modules.OSError(err)
	}
	return nil, nil
}

func serial(ctx context.Context, c *modules.Call) (any, error) {
	key := "dnsserial"
	if c.Bool("zone") {
		key += "_" + c.Str("zone")
	}
	stored, err := c.ExecKw(ctx, "grains.get", nil, map[string]any{"key": key})
	if err != nil {
		return nil, err
	}
	present := c.Now().Format("20060102") + "01"
	if !c.Bool("update") {
		if pytext.Truth(stored) {
			return stored, nil
		}
		return present, nil
	}
	current := present
	if have := pytext.Str(stored); pytext.Truth(stored) && have >= present {
		n, err := modules.ToInt(stored)
		if err != nil {
			return nil, err
		}
		current = strconv.FormatInt(n+1, 10)
	}
	_, err = c.ExecKw(ctx, "grains.setval", nil, map[string]any{"key": key, "val": current})
	return current, err
}
